/** Operators: accounts of people, their roles, and what they sign in with. */
import type { ColumnTypes } from './column-types.js'

export const operatorsTables = ({ withoutRowid }: ColumnTypes): string[] => [
  `create table operators (
    id text primary key,
    -- In lower case.
    email text not null unique,
    name text not null,
    -- PHC string of scrypt.
    password_hash text,
    -- Sealed.
    totp_secret text,
    -- Time step of the last accepted code.
    totp_step bigint not null,
    created_at bigint not null,
    last_sign_in_at bigint
  )`,
  `create table operator_roles (
    operator_id text not null,
    -- Or * for all workspaces and the appliance.
    workspace_id text not null,
    role text not null,
    -- operator: by hand; oidc: by the groups of an OpenID provider, which each sign-in reads.
    given_by text not null,
    constraint operator_roles_pk primary key (operator_id, workspace_id)
  )${withoutRowid}`,
  'create index operator_roles_by_workspace on operator_roles (workspace_id)',
  `create table operator_recovery_codes (
    operator_id text not null,
    -- SHA-256.
    code_hash text not null,
    constraint operator_recovery_codes_pk primary key (operator_id, code_hash)
  )${withoutRowid}`,
  `create table operator_passkeys (
    -- Credential id, base64url.
    id text primary key,
    operator_id text not null,
    name text not null,
    -- COSE key, base64url.
    public_key text not null,
    counter bigint not null,
    transports text not null,
    created_at bigint not null,
    last_used_at bigint
  )`,
  'create index operator_passkeys_by_operator on operator_passkeys (operator_id)',
  // Accounts of OpenID providers.
  `create table operator_identities (
    issuer text not null,
    subject text not null,
    operator_id text not null,
    constraint operator_identities_pk primary key (issuer, subject)
  )${withoutRowid}`,
  'create index operator_identities_by_operator on operator_identities (operator_id)',
  `create table operator_sessions (
    id text primary key,
    token_hash text not null unique,
    operator_id text not null,
    method text not null,
    -- 1 until the second factor is given.
    is_pending integer not null,
    confirmed_at bigint not null,
    seen_at bigint not null,
    created_at bigint not null,
    peer text not null,
    user_agent text not null
  )`,
  'create index operator_sessions_by_operator on operator_sessions (operator_id)',
  'create index operator_sessions_by_seen on operator_sessions (seen_at)',
  `create table operator_tokens (
    id text primary key,
    token_hash text not null unique,
    operator_id text not null,
    name text not null,
    hint text not null,
    -- Limits the token to the permissions of this role.
    role text,
    created_at bigint not null,
    last_used_at bigint,
    expires_at bigint
  )`,
  'create index operator_tokens_by_operator on operator_tokens (operator_id)',
  `create table operator_links (
    token_hash text primary key,
    operator_id text not null,
    kind text not null,
    expires_at bigint not null
  )`,
  'create index operator_links_by_operator on operator_links (operator_id)',
  'create index operator_links_by_expiry on operator_links (expires_at)',
  `create table operator_challenges (
    -- Of OpenID Connect: SHA-256 of the state.
    challenge text primary key,
    kind text not null,
    operator_id text,
    -- SHA-256 of the cookie of the browser that began.
    browser_hash text,
    -- PKCE verifier, nonce and return path of OpenID Connect.
    sealed text,
    expires_at bigint not null
  )`,
  'create index operator_challenges_by_expiry on operator_challenges (expires_at)',
]
