/**
 * Accounts whose address is proved, invitations that their holder accepts, the appliance's own mail, and who removed or held what.
 *
 * Ends invitations and resets that were mailed before: they were stored as mail of a workspace, where its viewers could read them.
 */
import { sql, type Kysely } from 'kysely'
import type { Dialect } from '../database.js'

const STATEMENTS = [
  // When a link that reached the mailbox was opened, or an identity provider vouched for the address; null: never.
  'alter table operators add column proved_at bigint',
  'alter table operator_links add column is_mailed integer default 0 not null',
  // The passkey that opened it.
  'alter table operator_sessions add column passkey_id text',
  // appliance: by an operator of all workspaces; workspace: by one of its own.
  'alter table workspaces add column removed_by text',
  // 1: only an operator of all workspaces releases it.
  'alter table queue add column held_by_appliance integer default 0 not null',
  // Roles offered by operators of a workspace, until the holder of the address accepts.
  `create table operator_invitations (
    id text primary key,
    email text not null,
    name text not null,
    workspace_id text not null,
    role text not null,
    -- Operator.
    invited_by text not null,
    -- Of the latest mail.
    token_hash text,
    created_at bigint not null,
    expires_at bigint not null,
    constraint operator_invitations_once unique (workspace_id, email)
  )`,
  'create unique index operator_invitations_by_token on operator_invitations (token_hash) where token_hash is not null',
  'create index operator_invitations_by_expiry on operator_invitations (expires_at)',
  // Mail with one-time links. It has no content: the link is made when the mail is sent.
  `create table account_mails (
    id text primary key,
    kind text not null,
    recipient text not null,
    operator_id text,
    invitation_id text,
    state text not null,
    -- The last answer of the recipient's server.
    reason text,
    attempts integer not null,
    -- Null: not to be tried again.
    next_attempt_at bigint,
    expires_at bigint not null,
    created_at bigint not null,
    finished_at bigint
  )`,
  'create index account_mails_due on account_mails (next_attempt_at) where next_attempt_at is not null',
  'create index account_mails_by_time on account_mails (created_at)',
  "delete from operator_links where kind in ('invitation', 'reset')",
]

export async function up(db: Kysely<unknown>, _: Dialect): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
}
