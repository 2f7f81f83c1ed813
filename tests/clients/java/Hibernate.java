// Hibernate as a JPA provider; see tests/clients/test_clients.py.
import jakarta.persistence.Column;
import jakarta.persistence.Entity;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.Table;
import java.time.Duration;
import java.time.Instant;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.hibernate.cfg.Configuration;

public class Hibernate {
    // [due_at]
    @Entity(name = "Task")
    @Table(name = "outbox")
    public static class Task {
        @Id @GeneratedValue(strategy = GenerationType.IDENTITY) Long id;
        String route;
        @Column(name = "task_key") String taskKey = "";
        byte[] payload;
        @Column(name = "delay_ms") long delayMs;
        @Column(name = "due_at") Instant dueAt; // null: due after delayMs
        int priority = 5;
        // [end]
        @Column(insertable = false) String state;
        @Column(name = "first_due_at", insertable = false) Instant firstDueAt;
    }

    static Task task(String route, String key) {
        Task task = new Task();
        task.route = route;
        task.taskKey = key;
        task.payload = "{\"order\": 17}".getBytes();
        return task;
    }

    static SessionFactory open() {
        Configuration configuration = new Configuration().addAnnotatedClass(Task.class);
        String url = "jdbc:" + System.getProperty("connector") + "://" + System.getenv("DUEBOX_CLIENT_HOST") + ":"
                + System.getenv("DUEBOX_CLIENT_PORT") + "/" + System.getenv("DUEBOX_CLIENT_DATABASE");
        configuration.setProperty("hibernate.connection.url", url);
        configuration.setProperty("hibernate.connection.username", System.getenv("DUEBOX_CLIENT_USER"));
        configuration.setProperty("hibernate.connection.password", System.getenv("DUEBOX_CLIENT_PASSWORD"));
        // [settings]
        configuration.setProperty("hibernate.jdbc.time_zone", "UTC");
        // [end]
        if (System.getenv("DUEBOX_CLIENT_USER").equals("app"))
            // [insert only]
            configuration.setProperty("hibernate.dialect", "org.hibernate.dialect.MySQLDialect"); // no RETURNING
        // [end]
        return configuration.buildSessionFactory();
    }

    static void insert(Session session, String key) {
        session.beginTransaction();
        // [delay]
        Task delayed = task("clients.delay", key);
        delayed.delayMs = Duration.ofMinutes(30).toMillis();
        session.persist(delayed);
        // [use due_at]
        Task at = task("clients.at", key);
        at.dueAt = Instant.now().plus(Duration.ofMinutes(30));
        session.persist(at);
        // [end]
        Task empty = task("clients.null", key);
        empty.delayMs = 1800000;
        session.persist(empty);
        session.getTransaction().commit();
        for (Task task : new Task[] {delayed, at, empty})
            System.out.println(task.id);
    }

    static void cancel(Session session, String key) {
        session.beginTransaction();
        System.out.println(session.createMutationQuery(
                "delete from Task where taskKey = :key and route = 'clients.delay' and state = 'scheduled'")
                .setParameter("key", key).executeUpdate());
        System.out.println(session.createMutationQuery("update Task set dueAt = :due, firstDueAt = null"
                + " where taskKey = :key and route = 'clients.at' and state = 'scheduled'")
                .setParameter("due", Instant.now().plus(Duration.ofMinutes(40))).setParameter("key", key).executeUpdate());
        session.getTransaction().commit();
    }

    public static void main(String[] args) {
        try (SessionFactory factory = open(); Session session = factory.openSession()) {
            if (args[0].equals("insert"))
                insert(session, args[1]);
            else
                cancel(session, args[1]);
        }
    }
}
