/* SPDX-License-Identifier: MIT
 *
 * TransactionOutboxPeer.java - gruelbox transaction-outbox: method calls kept in a table, flushed by the application.
 *
 * As its README says: a thread calls flush() again and again; the executor runs what it finds. MY_SQL_8 is the dialect
 * with SKIP LOCKED. Tasks are inserted by an outbox that submits nothing, so that all of them come from the table. This
 * line of versions has no due times; attemptFrequency is when a call that was not submitted is first looked for.
 */
import com.gruelbox.transactionoutbox.Dialect;
import com.gruelbox.transactionoutbox.Instantiator;
import com.gruelbox.transactionoutbox.Persistor;
import com.gruelbox.transactionoutbox.Submitter;
import com.gruelbox.transactionoutbox.TransactionManager;
import com.gruelbox.transactionoutbox.TransactionOutbox;
import java.time.Duration;
import java.time.Instant;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntConsumer;

final class TransactionOutboxPeer implements Driver.Peer {
    private static final int THREADS = 20, CONNECTIONS = 24, BATCH = 4096;
    private static final Duration FIRST = Duration.ofSeconds(1), AGAIN = Duration.ofSeconds(10);
    private static final Duration IDLE = Duration.ofMillis(10);

    /** What is called later, by name; its instance is made by the Instantiator below. */
    interface Task {
        void run(int number);
    }

    private final TransactionManager transactions;
    private volatile IntConsumer handler;

    TransactionOutboxPeer(String[] args) {
        // With the gap locks of REPEATABLE READ its SKIP LOCKED leaves many tasks to later rounds.
        transactions = TransactionManager.fromDataSource(
            Driver.pool(args, CONNECTIONS, "useServerPrepStmts=true&transactionIsolation=READ-COMMITTED"));
        outbox(FIRST, (entry, work) -> { }); // makes the tables
    }

    private TransactionOutbox outbox(Duration again, Submitter submitter) {
        return TransactionOutbox.builder()
            .transactionManager(transactions)
            .persistor(Persistor.forDialect(Dialect.MY_SQL_8))
            .instantiator(Instantiator.using(type -> (Task) number -> handler.accept(number)))
            .submitter(submitter)
            .attemptFrequency(again)
            .flushBatchSize(BATCH)
            .build();
    }

    @Override
    public void fill(int count, Instant first, Duration step) throws InterruptedException {
        TransactionOutbox outbox = outbox(FIRST, (entry, work) -> { });
        transactions.inTransaction(() -> {
            for (int i = 0; i < count; i++)
                outbox.schedule(Task.class).run(i);
        });
        Thread.sleep(FIRST.toMillis()); // until the last of them may be looked for
    }

    @Override
    public AutoCloseable start(IntConsumer handler) {
        this.handler = handler;
        ExecutorService pool = Executors.newFixedThreadPool(THREADS);
        TransactionOutbox outbox = outbox(AGAIN, Submitter.withExecutor(pool));
        Thread flusher = new Thread(() -> {
            while (!Thread.currentThread().isInterrupted())
                if (!flush(outbox))
                    LockSupport.parkNanos(IDLE.toNanos());
        });
        flusher.start();
        return () -> {
            flusher.interrupt();
            flusher.join();
            pool.shutdown();
        };
    }

    /** Whether there was work; a failed look is repeated, as the README has it. */
    private static boolean flush(TransactionOutbox outbox) {
        try {
            return outbox.flush();
        } catch (RuntimeException failed) {
            System.err.println("flush: " + failed);
            return false;
        }
    }
}
