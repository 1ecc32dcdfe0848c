/**
 * SQL of ACME accounts and certificates: one row each per ACME server, so that a CA's staging server is kept apart from its production one.
 *
 * All nodes that share the database use the same account and certificate. Private keys are sealed if `secrets.key` is set.
 */
import Type, { type Static } from 'typebox'
import { Value } from 'typebox/value'
import { given } from '../../core/given.js'
import type { Queries } from '../../db/database.js'
import { flag, type Flag } from '../../db/tables.js'
import type { PemPair } from '../../world/tls/self-signed-certificate.js'

const Moments = Type.Array(Type.Number())
const Suggestion = Type.Object({ id: Type.String(), at: Type.Number(), askAgainAt: Type.Number() })

interface AccountRow {
  /** URL of the server's directory. */
  directory: string
  /** PEM, or sealed PEM; null before the first order. */
  account_key: string | null
  account_url: string | null
  /** JSON. */
  attempts: string
  failures: number
  next_attempt_at: number
  fault: string | null
  /** JSON. */
  suggested: string | null
  is_wanted: Flag
}

interface CertificateRow {
  directory: string
  version: number
  /** PEM, leaf first. */
  chain: string
  /** PEM, or sealed PEM. */
  private_key: string
  obtained_at: number
}

declare module '../../db/tables.js' {
  interface Tables {
    acme_accounts: AccountRow
    acme_certificates: CertificateRow
  }
}

export interface AcmeState {
  /** URL of the account; null before there is one. */
  readonly account: string | null
  /** Moments of the attempts of the last day, ms since epoch UTC. */
  readonly attempts: readonly number[]
  /** In a row. */
  readonly failures: number
  readonly nextAttemptAt: number
  /** Why the last attempt failed; null if it succeeded. */
  readonly fault: string | null
  /** The CA's last suggestion, and the certificate it is for. */
  readonly suggested: Static<typeof Suggestion> | null
  /** Whether an operator asked for a certificate that is not due. */
  readonly isWanted: boolean
}

export const FRESH: AcmeState = {
  account: null,
  attempts: [],
  failures: 0,
  nextAttemptAt: 0,
  fault: null,
  suggested: null,
  isWanted: false,
}

export interface KeySeal {
  /** @param place bound to the seal, e.g. `acme_certificates/private_key/<directory>` */
  seal(text: string, place: string): string
  /** Returns plain text unchanged. @throws Error if it cannot be opened */
  open(text: string, place: string): string
}

export async function readAcmeState(db: Queries, directory: string): Promise<AcmeState> {
  const row = await db
    .selectFrom('acme_accounts')
    .selectAll()
    .where('directory', '=', directory)
    .executeTakeFirst()
  if (!row) return FRESH
  return {
    account: row.account_url,
    attempts: parsed(Moments, row.attempts) ?? [],
    failures: row.failures,
    nextAttemptAt: row.next_attempt_at,
    fault: row.fault,
    suggested: parsed(Suggestion, row.suggested) ?? null,
    isWanted: row.is_wanted === 1,
  }
}

/** Changes what is given; the rest stays. */
export async function changeAcmeState(
  db: Queries,
  directory: string,
  change: Partial<AcmeState>,
): Promise<void> {
  const { account, attempts, failures, nextAttemptAt, fault, suggested, isWanted } = change
  const columns = {
    ...(account === undefined ? {} : { account_url: account }),
    ...(attempts === undefined ? {} : { attempts: JSON.stringify(attempts) }),
    ...given({ failures, next_attempt_at: nextAttemptAt, fault }),
    ...(suggested === undefined ? {} : { suggested: suggested && JSON.stringify(suggested) }),
    ...(isWanted === undefined ? {} : { is_wanted: flag(isWanted) }),
  }
  await db
    .insertInto('acme_accounts')
    .values({ directory, ...FRESH_COLUMNS, ...columns })
    .onConflict(conflict => conflict.column('directory').doUpdateSet({ directory, ...columns }))
    .execute()
}

const FRESH_COLUMNS = { attempts: '[]', failures: 0, next_attempt_at: 0, is_wanted: flag(false) }

/** @returns PEM; undefined before there is one @throws Error if it cannot be opened */
export async function readAccountKey(
  db: Queries,
  directory: string,
  seal: KeySeal,
): Promise<string | undefined> {
  const row = await db
    .selectFrom('acme_accounts')
    .select('account_key')
    .where('directory', '=', directory)
    .executeTakeFirst()
  const key = row?.account_key ?? undefined
  return key === undefined ? undefined : seal.open(key, accountPlace(directory))
}

/** @param key PEM */
export async function writeAccountKey(
  db: Queries,
  directory: string,
  key: string,
  seal: KeySeal,
): Promise<void> {
  const sealed = seal.seal(key, accountPlace(directory))
  await db
    .insertInto('acme_accounts')
    .values({ directory, ...FRESH_COLUMNS, account_key: sealed })
    .onConflict(conflict => conflict.column('directory').doUpdateSet({ account_key: sealed }))
    .execute()
}

/** @returns grows whenever a certificate is stored; undefined without one */
export async function findCertificateVersion(db: Queries, directory: string): Promise<number | undefined> {
  const row = await db
    .selectFrom('acme_certificates')
    .select('version')
    .where('directory', '=', directory)
    .executeTakeFirst()
  return row?.version
}

/** @throws Error if its key cannot be opened */
export async function readCertificate(
  db: Queries,
  directory: string,
  seal: KeySeal,
): Promise<PemPair | undefined> {
  const row = await db
    .selectFrom('acme_certificates')
    .select(['chain', 'private_key'])
    .where('directory', '=', directory)
    .executeTakeFirst()
  return row && { cert: row.chain, key: seal.open(row.private_key, certificatePlace(directory)) }
}

/** Without its key. @returns PEM, leaf first */
export async function readChain(db: Queries, directory: string): Promise<string | undefined> {
  const row = await db
    .selectFrom('acme_certificates')
    .select('chain')
    .where('directory', '=', directory)
    .executeTakeFirst()
  return row?.chain
}

/** @returns its version */
export async function writeCertificate(
  db: Queries,
  directory: string,
  { cert, key }: PemPair,
  now: number,
  seal: KeySeal,
): Promise<number> {
  const columns = { chain: cert, private_key: seal.seal(key, certificatePlace(directory)), obtained_at: now }
  const { version } = await db
    .insertInto('acme_certificates')
    .values({ directory, version: 1, ...columns })
    .onConflict(conflict =>
      conflict
        .column('directory')
        .doUpdateSet(e => ({ ...columns, version: e('acme_certificates.version', '+', 1) })),
    )
    .returning('version')
    .executeTakeFirstOrThrow()
  return version
}

const PEM = '-----BEGIN'

/**
 * Seals private keys that are stored in the clear.
 *
 * Deletes and reinserts the rows: an update in place would leave the plain text in free parts of the pages.
 */
export async function sealAcmeKeys(db: Queries, seal: KeySeal): Promise<void> {
  const accounts = await db
    .selectFrom('acme_accounts')
    .selectAll()
    .where('account_key', 'like', `${PEM}%`)
    .execute()
  for (const { account_key: key, ...row } of accounts) {
    await db.deleteFrom('acme_accounts').where('directory', '=', row.directory).execute()
    const sealed = seal.seal(key ?? '', accountPlace(row.directory))
    await db
      .insertInto('acme_accounts')
      .values({ ...row, account_key: sealed })
      .execute()
  }
  const certificates = await db
    .selectFrom('acme_certificates')
    .selectAll()
    .where('private_key', 'like', `${PEM}%`)
    .execute()
  for (const { private_key: key, ...row } of certificates) {
    await db.deleteFrom('acme_certificates').where('directory', '=', row.directory).execute()
    const sealed = seal.seal(key, certificatePlace(row.directory))
    await db
      .insertInto('acme_certificates')
      .values({ ...row, private_key: sealed })
      .execute()
  }
}

function accountPlace(directory: string): string {
  return `acme_accounts/account_key/${directory}`
}

function certificatePlace(directory: string): string {
  return `acme_certificates/private_key/${directory}`
}

/** Damaged JSON counts as absent. */
function parsed<Schema extends typeof Moments | typeof Suggestion>(
  schema: Schema,
  text: string | null,
): Static<Schema> | undefined {
  if (text === null) return undefined
  try {
    const value: unknown = JSON.parse(text)
    return Value.Check(schema, value) ? value : undefined
  } catch {
    return undefined
  }
}
