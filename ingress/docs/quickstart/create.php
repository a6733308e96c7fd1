<?php
// Creates a session, prints where the citizen pays, and waits for the end.
declare(strict_types=1);

$api = getenv('QUITTANCE_URL') . '/api/v1/checkout/sessions';

function call(string $method, string $url, string $body = '', array $headers = []): array
{
    $headers[] = 'Authorization: Bearer ' . getenv('QUITTANCE_KEY');
    $text = file_get_contents($url, false, stream_context_create(['http' => [
        'method' => $method, 'header' => $headers, 'content' => $body, 'timeout' => 20, 'ignore_errors' => true,
    ]]));
    $answer = json_decode($text ?: 'null', true);
    if ($answer === null || isset($answer['code'])) {
        fwrite(STDERR, $text . "\n"); // a problem's "type" leads to the mend
        exit(1);
    }
    return $answer;
}

// Keep order, due and key before you call, in your program in its database: a webhook is
// compared with the due. After no answer or a 503 send the same again: it happens once.
$order = 'DOSSIER-' . bin2hex(random_bytes(8));
if (!is_dir('cases') && !mkdir('cases') || file_put_contents("cases/$order.txt", "5000 XAF\n") === false) {
    exit(1);
}
$session = call(
    'POST', $api,
    json_encode(['order_id' => $order, 'amount' => 5000, 'currency' => 'XAF', 'description' => 'Patente 2026']),
    ['Content-Type: application/json', 'Idempotency-Key: ' . bin2hex(random_bytes(16))],
);
echo "order_id: $order\ncheckout_url: {$session['checkout_url']}\n";

// A service waits for the webhook; asking by order_id is the fallback.
while ($session['status'] === 'open') {
    sleep(2);
    $session = call('GET', $api . '?' . http_build_query(['order_id' => $order]))['items'][0];
}
echo "status: {$session['status']}, paid: ", json_encode($session['paid']), "\n";
