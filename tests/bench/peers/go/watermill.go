// SPDX-License-Identifier: MIT
//
// watermill.go - lets tests/bench/peers/run measure watermill-sql: watermill PORT DATABASE USER PASSWORD BATCH
//
// Its delayed publisher and subscriber for MySQL, with messages deleted when acknowledged. Best settings: a poll of 1 ms
// when nothing was found, and BATCH messages a transaction (SubscribeBatchSize; its default is 100, and more is faster and
// repeats more after a crash, as its documentation says).
//
// Reads commands from its input, answers each with one line:
//
//	fill COUNT AHEAD_MS STEP_US   insert tasks 0 .. COUNT-1, the first due in AHEAD_MS, each STEP_US after the one before
//	run IDLE_S [STOP_AT]          start the subscriber, wait until every task has run, or none for IDLE_S, stop it; JSON of
//	                              what was seen. With STOP_AT it is stopped in between, when so many have run, and
//	                              started again
package main

import (
	"bufio"
	"context"
	stdsql "database/sql"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/components/delay"
	"github.com/ThreeDotsLabs/watermill/message"
	_ "github.com/go-sql-driver/mysql"
)

const (
	topic     = "bench"
	perInsert = 500
)

type seen struct {
	FirstDueUs int64   `json:"first_due_us"`
	Duplicates int     `json:"duplicates"`
	RanUs      []int64 `json:"ran_us"` // 0: it has not run
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "watermill:", err)
		os.Exit(1)
	}
}

func publisher(db *stdsql.DB) message.Publisher {
	made, err := sql.NewDelayedMySQLPublisher(sql.BeginnerFromStdSQL(db), sql.DelayedMySQLPublisherConfig{})
	check(err)
	return made
}

// The delayed subscriber with a batch size of ours; the table is the publisher's.
func subscriber(db *stdsql.DB, batch int) message.Subscriber {
	override := func(config *sql.SubscriberConfig) error {
		config.PollInterval = time.Millisecond
		config.InitializeSchema = false
		config.SchemaAdapter = sql.MySQLQueueSchema{
			SubscribeBatchSize: batch,
			GenerateWhereClause: func(sql.GenerateWhereClauseParams) (string, []any) {
				return "delayed_until <= UTC_TIMESTAMP()", nil
			},
		}
		return nil
	}
	made, err := sql.NewDelayedMySQLSubscriber(sql.BeginnerFromStdSQL(db),
		sql.DelayedMySQLSubscriberConfig{DeleteOnAck: true, OverrideSubscriberConfig: override})
	check(err)
	return made
}

func fill(db *stdsql.DB, count int, first time.Time, step time.Duration) {
	out := publisher(db)
	var messages []*message.Message
	for i := 0; i < count; i++ {
		one := message.NewMessage(watermill.NewUUID(), []byte(strconv.Itoa(i)))
		delay.Message(one, delay.Until(first.Add(time.Duration(i)*step)))
		messages = append(messages, one)
		if len(messages) == perInsert || i == count-1 {
			check(out.Publish(topic, messages...))
			messages = nil
		}
	}
}

// Subscribes until only so many tasks have not run, or nothing has come for that long.
func (found *seen) receive(db *stdsql.DB, batch, leave int, idle time.Duration) {
	missing := 0
	for _, at := range found.RanUs {
		if at == 0 {
			missing++
		}
	}
	in := subscriber(db, batch)
	messages, err := in.Subscribe(context.Background(), topic)
	check(err)
	for missing > leave {
		var one *message.Message
		select {
		case one = <-messages:
		case <-time.After(idle):
			check(in.Close())
			return
		}
		number, err := strconv.Atoi(string(one.Payload))
		check(err)
		if found.RanUs[number] == 0 {
			found.RanUs[number] = time.Now().UnixMicro()
			missing--
		} else {
			found.Duplicates++
		}
		one.Ack()
	}
	check(in.Close()) // waits for the transaction at work, which commits
}

func main() {
	batch, err := strconv.Atoi(os.Args[5])
	check(err)
	db, err := stdsql.Open("mysql", fmt.Sprintf("%s:%s@tcp(127.0.0.1:%s)/%s?time_zone=%%27%%2B00%%3A00%%27",
		os.Args[3], os.Args[4], os.Args[1], os.Args[2]))
	check(err)
	fmt.Println("ready")
	var first time.Time
	var count int
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var a, b, c int
		if n, _ := fmt.Sscanf(lines.Text(), "fill %d %d %d", &a, &b, &c); n == 3 {
			count = a
			first = time.Now().UTC().Truncate(time.Second).Add(time.Duration(b) * time.Millisecond)
			fill(db, count, first, time.Duration(c)*time.Microsecond)
			fmt.Println("filled")
		} else if n, _ := fmt.Sscanf(lines.Text(), "run %d %d", &a, &b); n >= 1 {
			found, idle := seen{FirstDueUs: first.UnixMicro(), RanUs: make([]int64, count)}, time.Duration(a)*time.Second
			if n == 2 {
				found.receive(db, batch, count-b, idle)
			}
			found.receive(db, batch, 0, idle)
			check(json.NewEncoder(os.Stdout).Encode(found))
		}
	}
}
