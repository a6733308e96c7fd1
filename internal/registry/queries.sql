-- internal/signed reads the rows of the tables that decide.

-- name: Revision :one
SELECT revision FROM registry_revision;

-- name: SuspendedEndpoints :many
SELECT destination_id, suspended_at FROM delivery_destinations WHERE kind = 'webhook' AND suspended_at IS NOT NULL;

-- Writing. A parameter that is null keeps the value of an existing row and gives a new
-- row the default.

-- name: SetPlatformOrigins :exec
UPDATE platform SET embed_origins = @embed_origins;

-- name: UpsertAgency :exec
INSERT INTO agencies (id, slug, name, created_at) VALUES (@id, @slug, @name, @created_at)
ON CONFLICT (id) DO UPDATE SET slug = excluded.slug, name = excluded.name;

-- name: SetLateMoney :exec
UPDATE agencies SET late_payments = COALESCE(sqlc.narg('late_payments')::text, late_payments),
    single_approval_below = COALESCE(sqlc.narg('single_approval_below')::bigint, single_approval_below)
WHERE id = @id;

-- name: SetAgencyLogo :exec
UPDATE agencies SET logo = @logo WHERE id = @id;

-- name: SetAgencyAddress :exec
UPDATE agencies SET address = @address WHERE id = @id;

-- name: SetAgencyContact :exec
UPDATE agencies SET contact_phone = @contact_phone, contact_email = @contact_email, contact_hours = @contact_hours WHERE id = @id;

-- name: SetAgencyReceipt :exec
UPDATE agencies SET receipt_title = @receipt_title, receipt_mention = @receipt_mention, receipt_accountant = @receipt_accountant WHERE id = @id;

-- name: SetDefaultService :exec
UPDATE agencies SET default_service = sqlc.narg('default_service') WHERE id = @id;

-- name: UpsertService :exec
INSERT INTO services (id, agency_id, code, label, active)
VALUES (@id, @agency_id, @code, @label, COALESCE(sqlc.narg('active')::boolean, true))
ON CONFLICT (id) DO UPDATE SET code = excluded.code, label = excluded.label,
    active = COALESCE(sqlc.narg('active')::boolean, services.active);

-- name: UpsertServiceMapping :exec
INSERT INTO service_mappings (agency_id, erp_code, service_code) VALUES (@agency_id, @erp_code, @service_code)
ON CONFLICT (agency_id, erp_code) DO UPDATE SET service_code = excluded.service_code;

-- name: RemoveServiceMapping :exec
DELETE FROM service_mappings WHERE agency_id = @agency_id AND erp_code = @erp_code;

-- name: NoteMappings :exec
UPDATE agencies SET set_by_command = ARRAY(SELECT DISTINCT unnest(set_by_command || @fields::text[]) ORDER BY 1),
    mappings_by_command = ARRAY(SELECT DISTINCT unnest(mappings_by_command || @erp_codes::text[]) ORDER BY 1)
WHERE id = @id;

-- name: ForgetMappings :exec
UPDATE agencies SET set_by_command = '{}', mappings_by_command = '{}' WHERE id = @id;

-- name: UpsertFee :exec
INSERT INTO fees (agency_id, channel, currency, ratio_ppm, fixed, minimum, maximum, step)
VALUES (@agency_id, @channel, @currency, @ratio_ppm, @fixed, @minimum, sqlc.narg('maximum'), @step)
ON CONFLICT (agency_id, channel, currency) DO UPDATE SET ratio_ppm = excluded.ratio_ppm, fixed = excluded.fixed,
    minimum = excluded.minimum, maximum = excluded.maximum, step = excluded.step;

-- name: UpsertERPSettings :exec
INSERT INTO erp_settings (agency_id, live, base_url, auth_type, auth_name, auth_sealed, conflict_is_done, networks, channels)
VALUES (@agency_id, @live, @base_url, @auth_type, @auth_name, @auth_sealed, @conflict_is_done, @networks, @channels)
ON CONFLICT (agency_id, live) DO UPDATE SET base_url = excluded.base_url, auth_type = excluded.auth_type,
    auth_name = excluded.auth_name, auth_sealed = excluded.auth_sealed,
    conflict_is_done = excluded.conflict_is_done, networks = excluded.networks, channels = excluded.channels;

-- name: UpsertConnectorAccount :exec
INSERT INTO connector_accounts (agency_id, live, offer, base_url, sealed, reports_sealed, flags, callback_networks)
VALUES (@agency_id, @live, @offer, @base_url, @sealed, @reports_sealed, @flags, @callback_networks)
ON CONFLICT (agency_id, live, offer) DO UPDATE SET base_url = excluded.base_url, sealed = excluded.sealed,
    reports_sealed = excluded.reports_sealed, flags = excluded.flags,
    callback_networks = excluded.callback_networks;

-- name: KeepReplacedAccount :exec
INSERT INTO replaced_accounts (agency_id, live, offer, base_url, sealed, reports_sealed, flags, callback_networks, replaced_at)
SELECT a.agency_id, a.live, a.offer, a.base_url, a.sealed, a.reports_sealed, a.flags, a.callback_networks, @replaced_at FROM connector_accounts a
WHERE a.agency_id = @agency_id AND a.live = @live AND a.offer = @offer;

-- name: UpsertPayoutMode :exec
INSERT INTO payout_modes (agency_id, live, mode, account) VALUES (@agency_id, @live, @mode, @account)
ON CONFLICT (agency_id, live, mode) DO UPDATE SET account = excluded.account;

-- name: RemovePayoutMode :exec
DELETE FROM payout_modes WHERE agency_id = @agency_id AND live = @live AND mode = @mode AND account = @account;

-- name: UpsertStatementAccount :exec
INSERT INTO statement_accounts (agency_id, live, code, kind, offer, fingerprint, iban, number, currency, profile, zone, cutoff_minutes,
    grace_days, settles_to, batch_pattern, columns, keep_years, holder, bank)
VALUES (@agency_id, @live, @code, @kind, sqlc.narg('offer'), @fingerprint, @iban, @number, @currency, @profile, @zone, @cutoff_minutes,
    @grace_days, sqlc.narg('settles_to'), @batch_pattern, sqlc.narg('columns'), @keep_years, @holder, @bank)
ON CONFLICT (agency_id, live, code) DO UPDATE SET offer = excluded.offer, fingerprint = excluded.fingerprint, iban = excluded.iban, number = excluded.number,
    profile = excluded.profile, cutoff_minutes = excluded.cutoff_minutes, grace_days = excluded.grace_days,
    settles_to = excluded.settles_to, batch_pattern = excluded.batch_pattern, columns = excluded.columns, keep_years = excluded.keep_years,
    holder = excluded.holder, bank = excluded.bank;

-- name: DemoteIntegrators :exec
UPDATE applications SET integrator = false WHERE integrator AND id = ANY(@ids::uuid[]);

-- name: UpsertApplication :exec
INSERT INTO applications (id, agency_id, name, active, integrator, offers, embed_origins, session_lifetime_ms,
    creations_per_minute, reads_per_minute, page_size, created_at)
VALUES (@id, @agency_id, @name, COALESCE(sqlc.narg('active')::boolean, true), COALESCE(sqlc.narg('integrator')::boolean, false),
    COALESCE(sqlc.narg('offers')::text[], '{}'), COALESCE(sqlc.narg('embed_origins')::text[], '{}'),
    COALESCE(sqlc.narg('session_lifetime_ms')::bigint, 86400000), COALESCE(sqlc.narg('creations_per_minute')::integer, 30),
    COALESCE(sqlc.narg('reads_per_minute')::integer, 600), COALESCE(sqlc.narg('page_size')::integer, 20), @created_at)
ON CONFLICT (id) DO UPDATE SET name = excluded.name,
    active = COALESCE(sqlc.narg('active')::boolean, applications.active),
    integrator = COALESCE(sqlc.narg('integrator')::boolean, applications.integrator),
    offers = COALESCE(sqlc.narg('offers')::text[], applications.offers),
    embed_origins = COALESCE(sqlc.narg('embed_origins')::text[], applications.embed_origins),
    session_lifetime_ms = COALESCE(sqlc.narg('session_lifetime_ms')::bigint, applications.session_lifetime_ms),
    creations_per_minute = COALESCE(sqlc.narg('creations_per_minute')::integer, applications.creations_per_minute),
    reads_per_minute = COALESCE(sqlc.narg('reads_per_minute')::integer, applications.reads_per_minute),
    page_size = COALESCE(sqlc.narg('page_size')::integer, applications.page_size);

-- The application of an agency's citizen portal. It has no quotas, because nobody has a key
-- for it.
-- name: UpsertPortal :exec
INSERT INTO applications (id, agency_id, name, active, integrator, portal, offers, embed_origins, success_origins,
    session_lifetime_ms, creations_per_minute, reads_per_minute, page_size, created_at)
VALUES (@id, @agency_id, @name, COALESCE(sqlc.narg('active')::boolean, true), false, true,
    COALESCE(sqlc.narg('offers')::text[], '{}'), '{}', COALESCE(sqlc.narg('success_origins')::text[], '{}'),
    COALESCE(sqlc.narg('session_lifetime_ms')::bigint, 7200000), 0, 0, 20, @created_at)
ON CONFLICT (id) DO UPDATE SET name = excluded.name,
    active = COALESCE(sqlc.narg('active')::boolean, applications.active),
    offers = COALESCE(sqlc.narg('offers')::text[], applications.offers),
    success_origins = COALESCE(sqlc.narg('success_origins')::text[], applications.success_origins),
    session_lifetime_ms = COALESCE(sqlc.narg('session_lifetime_ms')::bigint, applications.session_lifetime_ms);

-- A command sets these fields. A registry file leaves them.
-- name: NoteApplicationSet :exec
UPDATE applications SET set_by_command = ARRAY(SELECT DISTINCT unnest(set_by_command || @fields::text[]) ORDER BY 1) WHERE id = @id;

-- name: NoteEndpointSet :exec
UPDATE webhook_endpoints SET set_by_command = ARRAY(SELECT DISTINCT unnest(set_by_command || @fields::text[]) ORDER BY 1) WHERE id = @id;

-- name: DecideApplicationOrigins :exec
UPDATE applications SET embed_origins = @embed_origins, origins_by_command = @origins_by_command WHERE id = @id;

-- name: DecidePlatformOrigins :exec
UPDATE platform SET embed_origins = @embed_origins, origins_by_command = @origins_by_command;

-- name: ForgetApplicationCommands :exec
UPDATE applications SET set_by_command = '{}', origins_by_command = '{}' WHERE id = @id;

-- name: ForgetPlatformCommands :exec
UPDATE platform SET origins_by_command = '{}';

-- name: ForgetEndpointCommands :exec
UPDATE webhook_endpoints SET set_by_command = '{}' WHERE id = @id;

-- name: AddCashinAccess :exec
INSERT INTO cashin_access (application_id, redirect_origins, providers) VALUES (@application_id, '{}', '{}') ON CONFLICT DO NOTHING;

-- name: UpsertCashinAccess :exec
INSERT INTO cashin_access (application_id, redirect_origins, webhook_url, providers)
VALUES (@application_id, @redirect_origins, @webhook_url, @providers)
ON CONFLICT (application_id) DO UPDATE SET redirect_origins = excluded.redirect_origins, webhook_url = excluded.webhook_url, providers = excluded.providers;

-- Endpoints.

-- name: InsertWebhookEndpoint :exec
INSERT INTO webhook_endpoints (id, application_id, url, events, modes, max_in_flight, max_per_second, created_at)
VALUES (@id, sqlc.narg('application_id'), @url, COALESCE(sqlc.narg('events')::text[], '{}'),
    COALESCE(sqlc.narg('modes')::text[], '{test,live}'), COALESCE(sqlc.narg('max_in_flight')::integer, 8),
    NULLIF(sqlc.narg('max_per_second')::integer, 0), @created_at);

-- name: UpdateWebhookEndpoint :exec
UPDATE webhook_endpoints SET events = COALESCE(sqlc.narg('events')::text[], events),
    modes = COALESCE(sqlc.narg('modes')::text[], modes),
    max_in_flight = COALESCE(sqlc.narg('max_in_flight')::integer, max_in_flight),
    max_per_second = NULLIF(COALESCE(sqlc.narg('max_per_second')::integer, max_per_second), 0)
WHERE id = @id;

-- name: RemoveWebhookEndpoint :exec
UPDATE webhook_endpoints SET removed_at = sqlc.narg('removed_at') WHERE id = @id;

-- name: ExpireWebhookSecrets :exec
UPDATE webhook_secrets SET expires_at = @expires_at
WHERE endpoint_id = @endpoint_id AND (expires_at IS NULL OR expires_at > @expires_at);

-- name: InsertWebhookSecret :exec
INSERT INTO webhook_secrets (endpoint_id, digest, sealed, created_at) VALUES (@endpoint_id, @digest, @sealed, @created_at);

-- Sealed values. Each is replaced only while it is the one that was read.

-- name: ResealERP :execrows
UPDATE erp_settings SET auth_sealed = @sealed WHERE agency_id = @agency_id AND live = @live AND auth_sealed = @was;

-- name: ResealAccount :execrows
UPDATE connector_accounts SET sealed = @sealed WHERE agency_id = @agency_id AND live = @live AND offer = @offer AND sealed = @was;

-- name: ResealReplacedAccount :execrows
UPDATE replaced_accounts SET sealed = @sealed WHERE id = @id AND sealed = @was;

-- name: ResealAccountReports :execrows
UPDATE connector_accounts SET reports_sealed = @sealed WHERE agency_id = @agency_id AND live = @live AND offer = @offer AND reports_sealed = @was;

-- name: ResealReplacedAccountReports :execrows
UPDATE replaced_accounts SET reports_sealed = @sealed WHERE id = @id AND reports_sealed = @was;

-- name: ResealWebhookSecret :execrows
UPDATE webhook_secrets SET sealed = @sealed WHERE endpoint_id = @endpoint_id AND digest = @digest AND sealed = @was;

-- name: ResealStaffIssuer :execrows
UPDATE staff_issuers SET secret_sealed = @sealed WHERE id = @id AND secret_sealed = @was;

-- name: PutStaffIssuer :exec
INSERT INTO staff_issuers (id, address, client_id, secret_sealed, agency_id, algorithms, created_at)
VALUES (@id, @address, @client_id, @secret_sealed, sqlc.narg('agency_id'), @algorithms, @created_at)
ON CONFLICT (id) DO UPDATE SET client_id = excluded.client_id, secret_sealed = excluded.secret_sealed, algorithms = excluded.algorithms;

-- name: DeleteStaffIssuer :exec
DELETE FROM staff_issuers WHERE id = @id;

-- name: SetIssuerOutage :exec
UPDATE staff_issuers SET outage_until = sqlc.narg('outage_until'), outage_reason = @outage_reason WHERE id = @id;
