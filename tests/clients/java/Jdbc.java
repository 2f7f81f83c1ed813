// JDBC with MariaDB Connector/J and MySQL Connector/J; see tests/clients/test_clients.py.
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.Statement;
import java.sql.Types;
import java.time.Duration;
import java.time.LocalDateTime;
import java.time.ZoneOffset;

public class Jdbc {
    static void printId(PreparedStatement statement) throws Exception {
        try (ResultSet keys = statement.getGeneratedKeys()) {
            keys.next();
            System.out.println(keys.getLong(1));
        }
    }

    static void insert(Connection connection, String key) throws Exception {
        // [delay]
        try (PreparedStatement insert = connection.prepareStatement(
                "INSERT INTO outbox (route, task_key, payload, delay_ms) VALUES (?, ?, ?, ?)",
                Statement.RETURN_GENERATED_KEYS)) {
            insert.setString(1, "clients.delay");
            insert.setString(2, key);
            insert.setBytes(3, "{\"order\": 17}".getBytes());
            insert.setLong(4, Duration.ofMinutes(30).toMillis());
            insert.executeUpdate();
            // [end]
            printId(insert);
        }
        try (PreparedStatement insert = connection.prepareStatement(
                "INSERT INTO outbox (route, task_key, payload, due_at) VALUES (?, ?, ?, ?)",
                Statement.RETURN_GENERATED_KEYS)) {
            insert.setString(1, "clients.at");
            insert.setString(2, key);
            insert.setBytes(3, "{\"order\": 17}".getBytes());
            // [due_at]
            // A LocalDateTime is sent as it is; a Timestamp or Instant would be converted to the zone of the JVM.
            insert.setObject(4, LocalDateTime.now(ZoneOffset.UTC).plusMinutes(30));
            // [end]
            insert.executeUpdate();
            printId(insert);
        }
        try (PreparedStatement insert = connection.prepareStatement(
                "INSERT INTO outbox (route, task_key, payload, due_at, delay_ms) VALUES ('clients.null', ?, '{}', ?, 1800000)",
                Statement.RETURN_GENERATED_KEYS)) {
            insert.setString(1, key);
            insert.setNull(2, Types.TIMESTAMP);
            insert.executeUpdate();
            printId(insert);
        }
    }

    static void cancel(Connection connection, String key) throws Exception {
        try (PreparedStatement delete = connection.prepareStatement(
                "DELETE FROM outbox WHERE task_key = ? AND route = 'clients.delay' AND state = 'scheduled'")) {
            delete.setString(1, key);
            System.out.println(delete.executeUpdate());
        }
        try (PreparedStatement update = connection.prepareStatement(
                "UPDATE outbox SET due_at = ?, first_due_at = NULL"
                        + " WHERE task_key = ? AND route = 'clients.at' AND state = 'scheduled'")) {
            update.setObject(1, LocalDateTime.now(ZoneOffset.UTC).plusMinutes(40));
            update.setString(2, key);
            System.out.println(update.executeUpdate());
        }
    }

    public static void main(String[] args) throws Exception {
        String url = "jdbc:" + System.getProperty("connector") + "://" + System.getenv("DUEBOX_CLIENT_HOST") + ":"
                + System.getenv("DUEBOX_CLIENT_PORT") + "/" + System.getenv("DUEBOX_CLIENT_DATABASE");
        try (Connection connection = DriverManager.getConnection(url, System.getenv("DUEBOX_CLIENT_USER"),
                System.getenv("DUEBOX_CLIENT_PASSWORD"))) {
            if (args[0].equals("insert"))
                insert(connection, args[1]);
            else
                cancel(connection, args[1]);
        }
    }
}
