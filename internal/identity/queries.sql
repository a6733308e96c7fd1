-- name: InsertStaff :exec
INSERT INTO staff (id, name, folded, agency_id, clerks, created_at, proposed_by, approved_at, number, invited)
VALUES (@id, @name, @folded, sqlc.narg('agency_id'), @clerks, @created_at, sqlc.narg('proposed_by'), sqlc.narg('approved_at'), sqlc.narg('number'), @invited);

-- name: ApproveStaff :exec
UPDATE staff SET approved_by = @approved_by, approved_at = @approved_at WHERE id = @id;

-- name: RevokeStaff :exec
UPDATE staff SET revoked_at = @revoked_at WHERE id = @id;

-- A revocation waits for the transaction that acts for the staff.
-- name: LockStaff :exec
SELECT lock_staff(@ids::uuid[]);

-- name: GrantStaffRole :exec
INSERT INTO staff_roles (staff_id, role, granted_at) VALUES (@staff_id, @role, @granted_at);

-- name: EndStaffRole :exec
DELETE FROM staff_roles WHERE staff_id = @staff_id AND role = @role;

-- name: InsertStaffPasskey :exec
INSERT INTO staff_passkeys (id, staff_id, host, name, credential_id, spki_hash, credential, created_at, approves_from, sign_count)
VALUES (@id, @staff_id, @host, @name, @credential_id, @spki_hash, @credential, @created_at, @approves_from, @sign_count);

-- name: RemoveStaffPasskey :exec
UPDATE staff_passkeys SET removed_at = @removed_at WHERE id = @id;

-- The person is as if the last inviter had proposed the person: another one confirms.
-- name: ProposeInvited :exec
UPDATE staff SET proposed_by = sqlc.narg('proposed_by') WHERE id = @id AND approved_at IS NULL;

-- name: InsertStaffRequest :exec
INSERT INTO staff_requests (id, kind, agency_id, asked_by, origin, subject, body, token_hash, decision_id, created_at, ends_at, state)
VALUES (@id, @kind, sqlc.narg('agency_id'), @asked_by, @origin, @subject, @body, @token_hash, sqlc.narg('decision_id'), @created_at, @ends_at, 'waiting');

-- name: EndStaffRequest :exec
UPDATE staff_requests SET state = @state, code = @code, args = @args, done_at = @done_at WHERE id = @id;

-- name: InsertInvitation :exec
INSERT INTO staff_invitations (id, staff_id, roles, token_hash, invited_by, invited_at, ends_at)
VALUES (@id, @staff_id, @roles, @token_hash, sqlc.narg('invited_by'), @invited_at, @ends_at);

-- Empty for no agency.
-- name: AgencySlug :one
SELECT coalesce((SELECT slug FROM agencies WHERE id = sqlc.narg('id')), '')::text;

-- name: AcceptInvitation :exec
UPDATE staff_invitations SET token_hash = @token_hash, accepted_at = @accepted_at WHERE id = @id;

-- name: SetInvitedPasskeys :exec
UPDATE staff_invitations SET passkeys = @passkeys WHERE id = @id;

-- name: CountWrongDigits :exec
UPDATE staff_invitations SET wrong = wrong + 1 WHERE id = @id;

-- name: ConfirmInvitation :exec
UPDATE staff_invitations SET confirmed_by = sqlc.narg('confirmed_by'), confirmed_at = @confirmed_at WHERE id = @id;

-- name: WithdrawInvitation :exec
UPDATE staff_invitations SET withdrawn_at = @withdrawn_at WHERE id = @id;

-- name: SuspendStaff :exec
UPDATE staff SET suspended_at = sqlc.narg('suspended_at'), suspended_by = sqlc.narg('suspended_by') WHERE id = @id;

-- name: InsertStaffChange :exec
INSERT INTO staff_changes (id, staff_id, kind, add_roles, end_roles, reason, proposed_by, proposed_at, state, decided_at)
VALUES (@id, @staff_id, @kind, @add_roles, @end_roles, @reason, sqlc.narg('proposed_by'), @proposed_at, @state, sqlc.narg('decided_at'));

-- name: EndStaffChange :exec
UPDATE staff_changes SET state = @state, decided_by = sqlc.narg('decided_by'), decided_at = @decided_at WHERE id = @id;

-- name: InsertStaffContact :exec
INSERT INTO staff_contacts (id, staff_id, sealed, masked, locale, set_at) VALUES (@id, @staff_id, @sealed, @masked, @locale, @set_at);

-- name: UpdateStaffLocale :exec
UPDATE staff_contacts SET locale = @locale WHERE staff_id = @staff_id;

-- name: DeleteStaffContact :exec
DELETE FROM staff_contacts WHERE staff_id = @staff_id;

-- name: InsertKey :exec
INSERT INTO api_keys (id, hash, application_id, clerk_agency_id, clerk_code, staff_id, live, agencies, withdrawn, reads_per_minute, created_at, replaces)
VALUES (@id, @hash, sqlc.narg('application_id'), sqlc.narg('clerk_agency_id'), sqlc.narg('clerk_code'), sqlc.narg('staff_id'), @live, @agencies, @withdrawn,
    sqlc.narg('reads_per_minute'), @created_at, sqlc.narg('replaces'));

-- A parameter that is null leaves the column as it is.
-- name: UpdateGrant :exec
UPDATE api_keys SET agencies = COALESCE(sqlc.narg('agencies')::uuid[], agencies),
    withdrawn = COALESCE(sqlc.narg('withdrawn')::uuid[], withdrawn),
    reads_per_minute = COALESCE(sqlc.narg('reads_per_minute')::integer, reads_per_minute)
WHERE id = @id;

-- name: RevokeKey :exec
UPDATE api_keys SET revoked_at = @revoked_at WHERE id = @id AND revoked_at IS NULL;

-- name: EndKey :exec
UPDATE api_keys SET ends_at = @ends_at WHERE id = @id;

-- name: NoteUse :batchexec
UPDATE api_keys SET last_used_at = @last_used_at
WHERE id = @id AND (last_used_at IS NULL OR last_used_at < @last_used_at);

-- A parameter that is null leaves a known clerk as it is. A new clerk is active and has no
-- limits then.
-- name: UpsertClerk :exec
INSERT INTO clerks (agency_id, code, name, counter, active, payment_limit, day_limit, created_at)
VALUES (@agency_id, @code, @name, @counter, COALESCE(sqlc.narg('active')::boolean, true),
    COALESCE(sqlc.narg('payment_limit')::bigint, 0), COALESCE(sqlc.narg('day_limit')::bigint, 0), @created_at)
ON CONFLICT (agency_id, code) DO UPDATE SET name = excluded.name, counter = excluded.counter,
    active = COALESCE(sqlc.narg('active')::boolean, clerks.active),
    payment_limit = COALESCE(sqlc.narg('payment_limit')::bigint, clerks.payment_limit),
    day_limit = COALESCE(sqlc.narg('day_limit')::bigint, clerks.day_limit);

-- name: BeginClerkSession :exec
INSERT INTO clerk_sessions (id, key_id, device, begun_at, last_used_at, mac) VALUES (@id, @key_id, sqlc.narg('device'), @begun_at, @begun_at, @mac);

-- name: KeepNewestClerkSessions :exec
DELETE FROM clerk_sessions s WHERE s.key_id = @key_id AND s.id NOT IN (
    SELECT n.id FROM clerk_sessions n WHERE n.key_id = @key_id ORDER BY n.begun_at DESC, n.id DESC LIMIT @newest);

-- Returns no row when the session has ended, or its key was revoked.
-- name: UseClerkSession :one
UPDATE clerk_sessions s SET last_used_at = GREATEST(s.last_used_at, @now)
FROM api_keys k
WHERE s.id = @id AND k.id = s.key_id AND k.revoked_at IS NULL AND s.begun_at > @begun_after AND s.last_used_at > @used_after
RETURNING s.key_id, s.device, s.begun_at, s.mac;

-- name: EndClerkSession :exec
DELETE FROM clerk_sessions WHERE id = @id;

-- name: EndSessionsOfClerk :exec
DELETE FROM clerk_sessions s USING api_keys k
WHERE k.id = s.key_id AND k.clerk_agency_id = @agency_id AND k.clerk_code = @clerk_code;

-- name: CleanClerkSessions :exec
DELETE FROM clerk_sessions s USING api_keys k
WHERE k.id = s.key_id AND (k.revoked_at IS NOT NULL OR s.begun_at <= @begun_before OR s.last_used_at <= @used_before);

-- name: ClerkSessionBegan :one
SELECT begun_at FROM clerk_sessions WHERE id = @id AND key_id = @key_id FOR UPDATE;

-- name: BindClerkSession :exec
UPDATE clerk_sessions SET device = @device, mac = @mac WHERE id = @id AND key_id = @key_id;

-- name: ForeignDevice :one
SELECT EXISTS (SELECT 1 FROM clerk_devices WHERE device_id = @device_id AND (agency_id <> @agency_id OR live <> @live));

-- name: PutDevice :one
INSERT INTO clerk_devices (id, device_id, key_id, agency_id, clerk_code, live, pin, wrong, created_at, last_used_at, mac)
VALUES (@id, @device_id, @key_id, @agency_id, @clerk_code, @live, @pin, 0, @now, @now, @mac)
ON CONFLICT (device_id, clerk_code) DO UPDATE SET key_id = excluded.key_id, pin = excluded.pin, wrong = 0, last_used_at = excluded.last_used_at, mac = excluded.mac
RETURNING id;

-- An attempt counts before its PIN is compared, so that attempts at the same time on
-- several instances are not more than the limit.
-- name: TryPIN :one
UPDATE clerk_devices SET wrong = wrong + 1
WHERE device_id = @device_id AND clerk_code = @clerk_code AND wrong < @most AND last_used_at > @used_after
RETURNING *;

-- name: DeviceKnown :one
SELECT EXISTS (SELECT 1 FROM clerk_devices WHERE device_id = @device_id AND clerk_code = @clerk_code AND last_used_at > @used_after);

-- name: PINWasRight :exec
UPDATE clerk_devices SET wrong = 0, last_used_at = @now, mac = @mac WHERE id = @id;

-- name: ProveDevice :exec
UPDATE clerk_devices SET mac = @mac WHERE id = @id;

-- name: ForgetDevices :many
DELETE FROM clerk_devices WHERE id = sqlc.narg('id') OR agency_id = sqlc.narg('agency_id') AND clerk_code = sqlc.narg('clerk_code')
RETURNING *;

-- name: Devices :many
SELECT * FROM clerk_devices ORDER BY agency_id, clerk_code, created_at, id;

-- name: CleanDevices :exec
DELETE FROM clerk_devices d USING api_keys k WHERE k.id = d.key_id AND (k.revoked_at IS NOT NULL OR d.last_used_at <= @used_before);

-- name: BeginStaffSession :exec
INSERT INTO staff_sessions (hash, staff_id, passkey_id, begun_at, used_at, mac) VALUES (@hash, @staff_id, @passkey_id, @now, @now, @mac);

-- The session that was just made stays; one from the future was made by somebody else, or by another clock.
-- name: KeepNewestStaffSessions :exec
DELETE FROM staff_sessions o WHERE o.staff_id = @staff_id AND o.hash <> @hash AND (o.begun_at > @now OR o.hash IN (
    SELECT s.hash FROM staff_sessions s WHERE s.staff_id = @staff_id AND s.hash <> @hash AND s.begun_at <= @now ORDER BY s.begun_at DESC, s.hash OFFSET @others));

-- name: EndSessionsOfStaff :exec
DELETE FROM staff_sessions WHERE staff_id = @staff_id;

-- name: StaffSession :one
SELECT staff_id, passkey_id, begun_at, used_at, mac FROM staff_sessions WHERE hash = @hash;

-- name: UseStaffSession :exec
UPDATE staff_sessions SET used_at = @used_at WHERE hash = @hash AND used_at < @used_at;

-- name: EndStaffSession :exec
DELETE FROM staff_sessions WHERE hash = @hash;

-- name: EndOtherStaffSessions :exec
DELETE FROM staff_sessions WHERE staff_id = @staff_id AND hash <> @hash;

-- name: StaffSessions :many
SELECT hash, passkey_id, begun_at, used_at FROM staff_sessions
WHERE staff_id = @staff_id AND begun_at > @begun_after AND used_at > @used_after ORDER BY begun_at DESC, hash;

-- name: CleanStaffSessions :exec
DELETE FROM staff_sessions WHERE begun_at <= @begun_before OR used_at <= @used_before;

-- name: CleanStaffChallenges :exec
DELETE FROM staff_challenges WHERE at <= @before;

-- name: UseStaffPasskey :exec
UPDATE staff_passkeys SET sign_count = @sign_count, last_used_at = @last_used_at WHERE id = @id;

-- name: KeepStaffChallenge :exec
INSERT INTO staff_challenges (session, challenge, statement, at) VALUES (@session, @challenge, @statement, @at);

-- name: StaffChallenge :one
SELECT at FROM staff_challenges WHERE session = @session AND challenge = @challenge;

-- name: TakeStaffChallenge :one
DELETE FROM staff_challenges WHERE session = @session AND challenge = @challenge RETURNING statement, at;

-- name: InsertDecision :exec
INSERT INTO decisions (id, at, staff_id, kind, subject, verdict, agency_id, statement, challenge, passkey_id, public_key, client_data, authenticator_data, assertion)
VALUES (@id, @at, @staff_id, @kind, @subject, @verdict, sqlc.narg('agency_id'), @statement, @challenge, @passkey_id, @public_key, @client_data, @authenticator_data, @assertion);

-- name: BindStaff :exec
UPDATE staff SET issuer = sqlc.narg('issuer'), subject = sqlc.narg('subject') WHERE id = @id;

-- name: BindInvitation :exec
UPDATE staff_invitations SET issuer = @issuer, subject = @subject, email = sqlc.narg('email') WHERE id = @id;

-- name: BeginAtIssuer :exec
INSERT INTO staff_issuer_sign_ins (browser, issuer_id, staff_id, passkey_id, invitation_id, next, at, mac)
VALUES (@browser, @issuer_id, @staff_id, sqlc.narg('passkey_id'), sqlc.narg('invitation_id'), @next, @at, @mac);

-- name: AtIssuer :one
SELECT issuer_id, staff_id, passkey_id, invitation_id, next, at, mac FROM staff_issuer_sign_ins WHERE browser = @browser;

-- name: TakeAtIssuer :one
DELETE FROM staff_issuer_sign_ins WHERE browser = @browser RETURNING issuer_id, staff_id, passkey_id, invitation_id, next, at, mac;

-- name: EndAtIssuer :exec
DELETE FROM staff_issuer_sign_ins WHERE staff_id = @staff_id;

-- name: CleanAtIssuer :exec
DELETE FROM staff_issuer_sign_ins WHERE at <= @before;

-- name: UseLogoutToken :execrows
INSERT INTO staff_logout_tokens (issuer_id, token, ends_at) VALUES (@issuer_id, @token, @ends_at) ON CONFLICT DO NOTHING;

-- name: CleanLogoutTokens :exec
DELETE FROM staff_logout_tokens WHERE ends_at <= @before;

-- name: StaffOfSubject :many
SELECT id FROM staff WHERE issuer = @issuer AND subject = @subject ORDER BY id;
