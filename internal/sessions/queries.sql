-- name: Positions :many
SELECT partition, next FROM readmodel_positions WHERE topic = @topic;

-- name: InsertPosition :execrows
INSERT INTO readmodel_positions (topic, partition, next) VALUES (@topic, @partition, @next)
ON CONFLICT DO NOTHING;

-- name: MovePosition :execrows
UPDATE readmodel_positions SET next = @next WHERE topic = @topic AND partition = @partition AND next = @expected;

-- name: UpsertSession :batchexec
INSERT INTO sessions AS s (id, application_id, tenant_id, livemode, platform, order_id, amount, currency, mode,
    service_code, service_label, description, note, customer_id, metadata, success_url, cancel_url,
    payment_ref, notice_id, notice_ref, transaction_id, offers, created_at, expires_at, ended_at,
    status, sequence, collection, failure_code, failure_message, client_secret_hash)
VALUES (@id, @application_id, @tenant_id, @livemode, @platform, @order_id, @amount, @currency, @mode,
    @service_code, @service_label, @description, @note, @customer_id, @metadata, @success_url, @cancel_url,
    @payment_ref, @notice_id, @notice_ref, @transaction_id, @offers, @created_at, @expires_at, @ended_at,
    @status, @sequence, @collection, @failure_code, @failure_message, @client_secret_hash)
ON CONFLICT (id) DO UPDATE SET
    application_id = excluded.application_id, tenant_id = excluded.tenant_id, livemode = excluded.livemode,
    platform = excluded.platform, order_id = excluded.order_id, amount = excluded.amount, currency = excluded.currency,
    mode = excluded.mode, service_code = excluded.service_code, service_label = excluded.service_label,
    description = excluded.description, note = excluded.note, customer_id = excluded.customer_id,
    metadata = excluded.metadata, success_url = excluded.success_url, cancel_url = excluded.cancel_url,
    payment_ref = excluded.payment_ref, notice_id = excluded.notice_id, notice_ref = excluded.notice_ref,
    transaction_id = excluded.transaction_id, offers = excluded.offers, created_at = excluded.created_at,
    expires_at = excluded.expires_at, ended_at = excluded.ended_at, status = excluded.status,
    sequence = excluded.sequence, collection = excluded.collection, failure_code = excluded.failure_code,
    failure_message = excluded.failure_message, client_secret_hash = excluded.client_secret_hash
WHERE s.sequence < excluded.sequence;

-- name: OweConfirmation :batchexec
INSERT INTO erp_confirmations AS c (transaction_id, session_id, tenant_id, livemode, completed_at)
VALUES (@transaction_id, @session_id, @tenant_id, @livemode, @completed_at)
ON CONFLICT (transaction_id) DO UPDATE SET session_id = excluded.session_id, completed_at = excluded.completed_at
WHERE c.session_id IS NULL;

-- name: Session :one
SELECT * FROM sessions WHERE id = @id;

-- name: SessionsByID :many
SELECT * FROM sessions WHERE id = ANY(@ids::text[]);
