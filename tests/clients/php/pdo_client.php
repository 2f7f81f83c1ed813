<?php
// PDO; see tests/clients/test_clients.py.
[, $verb, $key] = $argv;
date_default_timezone_set(getenv('TZ') ?: 'UTC');
$pdo = new PDO('mysql:host=' . getenv('DUEBOX_CLIENT_HOST') . ';port=' . getenv('DUEBOX_CLIENT_PORT') . ';dbname=' .
               getenv('DUEBOX_CLIENT_DATABASE') . ';charset=utf8mb4', getenv('DUEBOX_CLIENT_USER'),
               getenv('DUEBOX_CLIENT_PASSWORD'), [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);

if ($verb === 'insert') {
    // [delay]
    $insert = $pdo->prepare('INSERT INTO outbox (route, task_key, payload, delay_ms) VALUES (?, ?, ?, ?)');
    $insert->execute(['clients.delay', $key, '{"order": 17}', 30 * 60 * 1000]);
    // [end]
    echo $pdo->lastInsertId(), "\n";
    // [due_at]
    $dueAt = (new DateTimeImmutable('+30 minutes'))->setTimezone(new DateTimeZone('UTC'));
    $insert = $pdo->prepare('INSERT INTO outbox (route, task_key, payload, due_at) VALUES (?, ?, ?, ?)');
    $insert->execute(['clients.at', $key, '{"order": 17}', $dueAt->format('Y-m-d H:i:s.u')]);
    // [end]
    echo $pdo->lastInsertId(), "\n";
    $insert = $pdo->prepare('INSERT INTO outbox (route, task_key, payload, due_at, delay_ms) VALUES (?, ?, ?, ?, ?)');
    $insert->execute(['clients.null', $key, '{}', null, 1800000]);
    echo $pdo->lastInsertId(), "\n";
} else {
    $delete = $pdo->prepare("DELETE FROM outbox WHERE task_key = ? AND route = 'clients.delay' AND state = 'scheduled'");
    $delete->execute([$key]);
    echo $delete->rowCount(), "\n";
    $update = $pdo->prepare('UPDATE outbox SET due_at = due_at + INTERVAL 10 MINUTE, first_due_at = NULL' .
                            " WHERE task_key = ? AND route = 'clients.at' AND state = 'scheduled'");
    $update->execute([$key]);
    echo $update->rowCount(), "\n";
}
