/* SPDX-License-Identifier: MIT
 *
 * DbScheduler.java - db-scheduler: its one-time tasks on a table of its own, polled.
 *
 * Best documented settings: polling strategy lock-and-fetch with 50 threads and the limits 0.5 and 4.0 of threads
 * (docs/performance.md there, the fastest line of its table), beside its stock strategy fetch with its default limits.
 * For MariaDB lock-and-fetch is off; MySQL 8's customization turns it on. The poll is 1 ms: what it needs to be on time.
 */
import com.github.kagkarlsson.scheduler.Scheduler;
import com.github.kagkarlsson.scheduler.SchedulerBuilder;
import com.github.kagkarlsson.scheduler.SchedulerClient;
import com.github.kagkarlsson.scheduler.jdbc.MySQL8JdbcCustomization;
import com.github.kagkarlsson.scheduler.task.SchedulableInstance;
import com.github.kagkarlsson.scheduler.task.helper.OneTimeTask;
import com.github.kagkarlsson.scheduler.task.helper.Tasks;
import java.sql.Connection;
import java.sql.Statement;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntConsumer;
import javax.sql.DataSource;

final class DbScheduler implements Driver.Peer {
    private static final int THREADS = 50, CONNECTIONS = 54;

    private final DataSource database;
    private final boolean lock;
    private volatile IntConsumer handler;
    private final OneTimeTask<Void> task = Tasks.oneTime("bench").execute(
        (instance, context) -> handler.accept(Integer.parseInt(instance.getId())));

    DbScheduler(String[] args, boolean lock) throws Exception {
        this.lock = lock;
        // Lock-and-fetch adds up the counts of a batch, which bulk statements do not tell.
        database = Driver.pool(args, CONNECTIONS, "useBulkStmts=false");
        try (Connection connection = database.getConnection(); Statement statement = connection.createStatement()) {
            // The columns and indexes that its documentation gives for MariaDB.
            statement.execute("CREATE TABLE scheduled_tasks (task_name VARCHAR(100) NOT NULL,"
                + " task_instance VARCHAR(100) NOT NULL, task_data BLOB, execution_time TIMESTAMP(6) NOT NULL,"
                + " picked BOOLEAN NOT NULL, picked_by VARCHAR(50), last_success TIMESTAMP(6) NULL,"
                + " last_failure TIMESTAMP(6) NULL, consecutive_failures INT, last_heartbeat TIMESTAMP(6) NULL,"
                + " version BIGINT NOT NULL, priority SMALLINT, PRIMARY KEY (task_name, task_instance),"
                + " INDEX (execution_time), INDEX (last_heartbeat), INDEX (priority DESC, execution_time ASC))");
        }
    }

    @Override
    public void fill(int count, Instant first, Duration step) {
        List<SchedulableInstance<?>> instances = new ArrayList<>();
        for (int i = 0; i < count; i++)
            instances.add(SchedulableInstance.of(task.instance(Integer.toString(i)), first.plus(step.multipliedBy(i))));
        SchedulerClient.Builder.create(database, task).build().scheduleBatch(instances);
    }

    @Override
    public AutoCloseable start(IntConsumer handler) {
        this.handler = handler;
        SchedulerBuilder builder = Scheduler.create(database, task).threads(THREADS).pollingInterval(Duration.ofMillis(1));
        if (lock)
            builder.jdbcCustomization(new MySQL8JdbcCustomization(false)).pollUsingLockAndFetch(0.5, 4.0);
        Scheduler scheduler = builder.build();
        scheduler.start();
        return scheduler::stop;
    }
}
