// go-sql-driver/mysql; see tests/clients/test_clients.py.
package main

import (
	"database/sql"
	"fmt"
	"os"
	"time"

	_ "github.com/go-sql-driver/mysql"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func id(done sql.Result, err error) {
	must(err)
	number, err := done.LastInsertId()
	must(err)
	fmt.Println(number)
}

func changed(done sql.Result, err error) {
	must(err)
	number, err := done.RowsAffected()
	must(err)
	fmt.Println(number)
}

func insert(db *sql.DB, key string) {
	// [delay]
	done, err := db.Exec("INSERT INTO outbox (route, task_key, payload, delay_ms) VALUES (?, ?, ?, ?)",
		"clients.delay", key, `{"order": 17}`, (30 * time.Minute).Milliseconds())
	// [end]
	id(done, err)
	// [use due_at]
	dueAt := time.Now().Add(30 * time.Minute) // any zone
	done, err = db.Exec("INSERT INTO outbox (route, task_key, payload, due_at) VALUES (?, ?, ?, ?)",
		"clients.at", key, `{"order": 17}`, dueAt)
	// [end]
	id(done, err)
	id(db.Exec("INSERT INTO outbox (route, task_key, payload, due_at, delay_ms) VALUES (?, ?, ?, ?, ?)",
		"clients.null", key, "{}", sql.NullTime{}, 1800000))
}

func main() {
	user, password, host := os.Getenv("DUEBOX_CLIENT_USER"), os.Getenv("DUEBOX_CLIENT_PASSWORD"), os.Getenv("DUEBOX_CLIENT_HOST")
	port, database := os.Getenv("DUEBOX_CLIENT_PORT"), os.Getenv("DUEBOX_CLIENT_DATABASE")
	// [due_at]
	// loc is what times are converted to; UTC is also its default. Never loc=Local.
	db, err := sql.Open("mysql", user+":"+password+"@tcp("+host+":"+port+")/"+database+"?parseTime=true&loc=UTC")
	// [end]
	must(err)
	key := os.Args[2]
	if os.Args[1] == "insert" {
		insert(db, key)
		return
	}
	changed(db.Exec("DELETE FROM outbox WHERE task_key = ? AND route = 'clients.delay' AND state = 'scheduled'", key))
	changed(db.Exec("UPDATE outbox SET due_at = ?, first_due_at = NULL"+
		" WHERE task_key = ? AND route = 'clients.at' AND state = 'scheduled'", time.Now().Add(40*time.Minute), key))
}
