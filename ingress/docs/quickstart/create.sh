#!/bin/sh
# Creates a session, prints where the citizen pays, and waits for the end.
set -eu

api="$QUITTANCE_URL/api/v1/checkout/sessions"
order="DOSSIER-$(date +%s)-$$"

call() {
  curl -sS --fail-with-body --retry 3 --max-time 20 -H "Authorization: Bearer $QUITTANCE_KEY" "$@"
}

fail() { # a problem's "type" leads to the mend
  echo "$1" >&2
  exit 1
}

field() { # jq would do better
  sed -n "s/.*\"$1\": *\"\{0,1\}\([^\",}]*\).*/\1/p"
}

# Keep order and key before you call. After no answer or a 503 send the same
# again, as --retry does: it happens once.
session=$(call "$api" -H 'Content-Type: application/json' -H "Idempotency-Key: $order-1" \
  -d "{\"order_id\": \"$order\", \"amount\": 5000, \"description\": \"Patente 2026\"}") || fail "$session"
echo "order_id: $order"
echo "checkout_url: $(echo "$session" | field checkout_url)"

# A service waits for the webhook; asking by order_id is the fallback.
while :; do
  list=$(call -G "$api" --data-urlencode "order_id=$order") || fail "$list"
  [ "$(echo "$list" | field status)" = open ] || break
  sleep 2
done
echo "status: $(echo "$list" | field status), paid: $(echo "$list" | field paid)"
