<?php
// A program with the client that OpenAPI Generator makes for PHP; see clients_test.go. Its
// argument is the folder of the client.
require 'GuzzleHttp/autoload.php';

spl_autoload_register(function (string $class) use ($argv): void {
    if (str_starts_with($class, 'OpenAPI\\Client\\')) {
        require $argv[1] . '/lib/' . strtr(substr($class, 15), '\\', '/') . '.php';
    }
});

use OpenAPI\Client\Api\SessionsApi;
use OpenAPI\Client\ApiException;
use OpenAPI\Client\Configuration;
use OpenAPI\Client\Model\SessionCreate;
use OpenAPI\Client\ObjectSerializer;

$config = (new Configuration())->setHost(getenv('QUITTANCE_URL'))->setAccessToken(getenv('QUITTANCE_KEY'));
$sessions = new SessionsApi(new GuzzleHttp\Client(['proxy' => '']), $config);

$body = new SessionCreate(['order_id' => getenv('QUITTANCE_ORDER'), 'amount' => 5_000_000_000]);
$created = $sessions->createSession(bin2hex(random_bytes(16)), $body);
$read = $sessions->getSession($created->getId());
printf("%s %s %d %s\n", $read->getId(), $read->getStatus(), $read->getAmount(), $read->getMode());
try {
    $sessions->createSession(bin2hex(random_bytes(16)), $body);
} catch (ApiException $e) {
    printf("%d %s\n", $e->getCode(), $e->getResponseObject()->getCode());
}

// The generator's PHP does not follow the mapping of a discriminator.
$models = [
    'checkout.completed' => 'CompletedEvent',
    'checkout.failed' => 'FailedEvent',
    'checkout.cancelled' => 'CancelledEvent',
    'checkout.expired' => 'ExpiredEvent',
    'checkout.late_payment' => 'LatePaymentEvent',
    'checkout.reversed' => 'ReversedEvent',
];
foreach (explode("\n", getenv('QUITTANCE_EVENTS')) as $line) {
    $raw = json_decode($line);
    $event = ObjectSerializer::deserialize($raw, '\\OpenAPI\\Client\\Model\\' . $models[$raw->event]);
    $detail = match ($event->getEvent()) {
        'checkout.completed', 'checkout.late_payment' => $event->getTotalAmount(),
        'checkout.failed' => $event->getFailureCode(),
        'checkout.cancelled', 'checkout.expired' => $event->getStatus(),
        'checkout.reversed' => $event->getItems()[0]->getAmount(),
    };
    printf("%s %s %d %s\n", $event->getEvent(), $event->getSessionId(), $event->getAmount(), $detail);
}
