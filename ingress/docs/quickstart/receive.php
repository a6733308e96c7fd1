<?php
// Receives webhooks. It answers 2xx only after the case is stored: what is answered 2xx never comes again.
declare(strict_types=1);

function signed(string $body): bool
{
    $key = base64_decode(substr(getenv('QUITTANCE_WEBHOOK_SECRET'), strlen('whsec_')), true);
    $id = $_SERVER['HTTP_WEBHOOK_ID'] ?? '';
    $timestamp = $_SERVER['HTTP_WEBHOOK_TIMESTAMP'] ?? '';
    if (!$key || !ctype_digit($timestamp) || abs(time() - (int) $timestamp) > 300) {
        return false;
    }
    $want = 'v1,' . base64_encode(hash_hmac('sha256', "$id.$timestamp.$body", $key, true));
    foreach (explode(' ', $_SERVER['HTTP_WEBHOOK_SIGNATURE'] ?? '') as $got) {
        if (hash_equals($want, $got)) {
            return true;
        }
    }
    return false;
}

// Keeps what an event says about a case: in your program one transaction of its database. Here a case
// is a file. create.php wrote its first line, the due, before it created the session; each other line
// is the last word about the money of a session. A case is unlocked while one of them ends in paid.
function store(array $event): void
{
    if ($event['livemode'] !== str_starts_with(getenv('QUITTANCE_KEY'), 'sk_live_')) {
        return; // test money unlocks nothing
    }
    $reversed = $event['event'] === 'checkout.reversed' && $event['was_completed']; // the money was given back
    if ($event['event'] !== 'checkout.completed' && !$reversed) {
        return;
    }
    $file = 'cases/' . rawurlencode($event['order_id']) . '.txt';
    $lock = fopen('cases/lock', 'c'); // PHP runs several requests at a time
    flock($lock, LOCK_EX);
    if (!file_exists($file)) {
        return; // the order of another system that shares the endpoint
    }
    $lines = explode("\n", trim(file_get_contents($file)));
    $kept = [$due = array_shift($lines)];
    foreach ($lines as $line) {
        [$session, $sequence] = explode(' ', $line);
        if ($session !== $event['session_id']) {
            $kept[] = $line;
        } elseif ((int) $sequence >= $event['sequence']) {
            return; // this event was stored before, or a later one
        }
    }
    $state = $reversed ? 'reversed' : 'paid';
    if ($state === 'paid' && $due !== "{$event['amount']} {$event['currency']}") {
        $state = 'differs'; // a person must look at it
    }
    $kept[] = "{$event['session_id']} {$event['sequence']} $state";
    $new = fopen("$file.new", 'w'); // on the disk as a whole, then in its place
    fwrite($new, implode("\n", $kept) . "\n");
    fsync($new);
    rename("$file.new", $file);
    error_log("{$event['order_id']} $state");
}

// Without this PHP would go on after a write that failed.
set_error_handler(fn (int $level, string $text) => throw new ErrorException($text, severity: $level));
http_response_code(500); // for an error that cannot be caught, too
try {
    $body = file_get_contents('php://input');
    if (signed($body)) {
        store(json_decode($body, true, flags: JSON_THROW_ON_ERROR));
        http_response_code(204);
    } else {
        http_response_code(400);
    }
} catch (Throwable $error) {
    error_log((string) $error); // after 500 the event comes again
}
