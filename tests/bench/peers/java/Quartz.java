/* SPDX-License-Identifier: MIT
 *
 * Quartz.java - Quartz with its JDBC job store: one job, one simple trigger a task.
 *
 * Best documented settings: triggers acquired in batches of as many as there are threads, which asks for the lock while
 * acquiring (its configuration reference says so); the shortest idle wait it allows, 1 s; not clustered, so its locks
 * stay in memory; the same connection pool as the other peers.
 */
import com.zaxxer.hikari.HikariDataSource;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.Statement;
import java.time.Duration;
import java.time.Instant;
import java.util.Date;
import java.util.HashSet;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.function.IntConsumer;
import org.quartz.Job;
import org.quartz.JobBuilder;
import org.quartz.JobDetail;
import org.quartz.JobExecutionContext;
import org.quartz.Scheduler;
import org.quartz.SimpleScheduleBuilder;
import org.quartz.Trigger;
import org.quartz.TriggerBuilder;
import org.quartz.impl.StdSchedulerFactory;

public final class Quartz implements Driver.Peer {
    private static final int THREADS = 20, CONNECTIONS = 24;
    private static final String TABLES = "/org/quartz/impl/jdbcjobstore/tables_mysql_innodb.sql";

    private static volatile IntConsumer handler; // Quartz makes the job objects itself

    public static final class Task implements Job {
        @Override
        public void execute(JobExecutionContext context) {
            handler.accept(Integer.parseInt(context.getTrigger().getKey().getName()));
        }
    }

    private final String[] args;

    Quartz(String[] args) throws Exception {
        this.args = args;
        try (HikariDataSource database = Driver.pool(args, 1, ""); Connection connection = database.getConnection();
             Statement statement = connection.createStatement(); InputStream file = Quartz.class.getResourceAsStream(TABLES)) {
            String tables = new String(file.readAllBytes(), StandardCharsets.UTF_8).replaceAll("(?m)^#.*$", "");
            for (String sql : tables.split(";"))
                if (!sql.isBlank())
                    statement.execute(sql);
        }
    }

    private Scheduler scheduler() throws Exception {
        Properties p = new Properties();
        p.put("org.quartz.scheduler.instanceName", "bench");
        p.put("org.quartz.scheduler.idleWaitTime", "1000");
        p.put("org.quartz.scheduler.batchTriggerAcquisitionMaxCount", Integer.toString(THREADS));
        p.put("org.quartz.threadPool.class", "org.quartz.simpl.SimpleThreadPool");
        p.put("org.quartz.threadPool.threadCount", Integer.toString(THREADS));
        p.put("org.quartz.jobStore.class", "org.quartz.impl.jdbcjobstore.JobStoreTX");
        p.put("org.quartz.jobStore.driverDelegateClass", "org.quartz.impl.jdbcjobstore.StdJDBCDelegate");
        p.put("org.quartz.jobStore.acquireTriggersWithinLock", "true");
        p.put("org.quartz.jobStore.dataSource", "bench");
        p.put("org.quartz.dataSource.bench.provider", "hikaricp");
        p.put("org.quartz.dataSource.bench.driver", "org.mariadb.jdbc.Driver");
        p.put("org.quartz.dataSource.bench.URL", "jdbc:mariadb://127.0.0.1:" + args[1] + "/" + args[2]);
        p.put("org.quartz.dataSource.bench.user", args[3]);
        p.put("org.quartz.dataSource.bench.password", args[4]);
        p.put("org.quartz.dataSource.bench.maxConnections", Integer.toString(CONNECTIONS));
        return new StdSchedulerFactory(p).getScheduler();
    }

    @Override
    public void fill(int count, Instant first, Duration step) throws Exception {
        JobDetail job = JobBuilder.newJob(Task.class).withIdentity("task").storeDurably().build();
        Set<Trigger> triggers = new HashSet<>();
        for (int i = 0; i < count; i++)
            triggers.add(TriggerBuilder.newTrigger().withIdentity(Integer.toString(i)).forJob(job)
                .startAt(Date.from(first.plus(step.multipliedBy(i))))
                .withSchedule(SimpleScheduleBuilder.simpleSchedule().withMisfireHandlingInstructionFireNow()).build());
        Scheduler scheduler = scheduler();
        scheduler.scheduleJobs(Map.of(job, triggers), true);
        scheduler.shutdown();
    }

    @Override
    public AutoCloseable start(IntConsumer handler) throws Exception {
        Quartz.handler = handler;
        Scheduler scheduler = scheduler();
        scheduler.start();
        return () -> scheduler.shutdown(true);
    }
}
