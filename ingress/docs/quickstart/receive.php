<?php
// Receives webhooks and believes only those that are signed.
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

$body = file_get_contents('php://input');
if (!signed($body)) {
    http_response_code(400);
    exit;
}
$event = json_decode($body, true);
// Here unlock the case, before the answer, and answer 500 if that fails: the event comes again.
// Only for checkout.completed with the livemode that you expect, and with the order, amount and
// currency of the case; once for each order_id, since an event may come twice.
error_log("{$event['event']} {$event['order_id']}");
http_response_code(204);
