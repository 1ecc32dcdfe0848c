/** SQL of sending domains, their checks and signing keys; `dkim-key-store.ts` has the rest of the key life cycle. */
import type { Selectable } from 'kysely'
import { AppError } from '../../core/errors.js'
import { must } from '../../core/must.js'
import { APPLIANCE } from '../../core/owner.js'
import type { Queries } from '../../db/database.js'
import { keysetPage } from '../../db/listing.js'
import { snapshot } from '../../db/snapshot.js'
import { statement } from '../../db/statement.js'
import { flag, type Flag } from '../../db/tables.js'
import type { Listing, Page } from '../../http/pagination.js'
import type { DkimKey } from '../../mail/dkim/dkim-sign.js'

interface DomainRow {
  id: string
  owner: string
  domain: string
  verification_token: string
  is_vouched: Flag
  is_sandbox: Flag
  verified_at: number | null
  checked_at: number | null
  findings: string | null
  created_at: number
  removed_at: number | null
  next_check_at: number | null
  failing_since: number | null
  failed_checks: number
  watched_since: number
}

export const KEY_STATES = ['active', 'standby', 'retiring'] as const

interface DkimKeyRow {
  id: string
  domain_id: string
  selector: string
  algorithm: DkimKey['algorithm']
  /** PEM, encrypted unless `sealKeys` has yet to run. */
  private_key: string
  public_key: string
  state: (typeof KEY_STATES)[number]
  created_at: number
  retire_at: number | null
  replaced_at: number | null
}

declare module '../../db/tables.js' {
  interface Tables {
    domains: DomainRow
    dkim_keys: DkimKeyRow
  }
}

export const FINDING_STATUSES = ['pending', 'verified', 'failed'] as const

export interface Finding {
  readonly status: (typeof FINDING_STATUSES)[number]
  readonly isUnanswered?: true
  /** Values found, or why there is no answer; at most 10 of at most 300 characters. */
  readonly found: readonly string[]
}

/** The public half of a DKIM key; a domain has a pair of selectors per algorithm. */
export interface Selector {
  /** First label of `<name>._domainkey.<domain>`; unique on this server. */
  readonly name: string
  readonly algorithm: DkimKey['algorithm']
  /** Base64 as in the `p=` tag. */
  readonly publicKey: string
  /** `active` signs; `standby` is published for the next rotation; `retiring` signed before and stays published for mail in transit. */
  readonly state: DkimKeyRow['state']
  /** While retiring: when the selector can get a new key. */
  readonly retireAt: number | null
  /** For a renewed standby: when its selector got this key. */
  readonly replacedAt: number | null
}

export interface Domain {
  readonly id: string
  /** Workspace id or `APPLIANCE`. */
  readonly owner: string
  /** A-labels, lower case. */
  readonly domain: string
  readonly verificationToken: string
  /** Verified by the operator, without DNS. */
  readonly isVouched: boolean
  /** Verified without DNS; no sandbox mail leaves the server. */
  readonly isSandbox: boolean
  readonly verifiedAt: number | null
  readonly checkedAt: number | null
  /** By record name. */
  readonly findings: Readonly<Record<string, Finding>>
  readonly createdAt: number
  readonly selectors: readonly Selector[]
  /** Next automatic check; null for vouched and sandbox domains. */
  readonly nextCheckAt: number | null
  /** Since when the records of a verified domain are wrong. */
  readonly failingSince: number | null
  readonly failedChecks: number
  /** When it was added, verify was called, or verification was lost. */
  readonly watchedSince: number
}

/** A key pair to insert; private keys are read only for signing. */
export interface NewDkimKey extends Selector {
  readonly id: string
  /** PKCS#8 PEM. */
  readonly privateKey: string
}

export type KeyPairText = Pick<NewDkimKey, 'publicKey' | 'privateKey'>

/** Name of the key's record (RFC 6376 §3.6.2.1). */
export function dkimName({ domain }: Pick<Domain, 'domain'>, { name }: Pick<Selector, 'name'>): string {
  return `${name}._domainkey.${domain}`
}

export type VerificationState = Pick<
  Domain,
  'verifiedAt' | 'failingSince' | 'failedChecks' | 'watchedSince' | 'nextCheckAt'
>

type NewDomain = Omit<
  Domain,
  'selectors' | 'findings' | 'checkedAt' | 'failingSince' | 'failedChecks' | 'watchedSince'
>

export async function insertDomain(
  db: Queries,
  domain: NewDomain,
  keys: readonly NewDkimKey[],
  seal: KeyCipher,
): Promise<void> {
  await db
    .insertInto('domains')
    .values({
      id: domain.id,
      owner: domain.owner,
      domain: domain.domain,
      verification_token: domain.verificationToken,
      is_vouched: flag(domain.isVouched),
      is_sandbox: flag(domain.isSandbox),
      verified_at: domain.verifiedAt,
      checked_at: null,
      findings: null,
      created_at: domain.createdAt,
      removed_at: null,
      next_check_at: domain.nextCheckAt,
      failing_since: null,
      failed_checks: 0,
      watched_since: domain.createdAt,
    })
    .execute()
  await db
    .insertInto('dkim_keys')
    .values(
      keys.map(key => ({
        id: key.id,
        domain_id: domain.id,
        selector: key.name,
        algorithm: key.algorithm,
        private_key: seal.seal(key.privateKey, keyContext(key.id)),
        public_key: key.publicKey,
        state: key.state,
        created_at: domain.createdAt,
        retire_at: key.retireAt,
        replaced_at: key.replacedAt,
      })),
    )
    .execute()
}

export async function findDomain(db: Queries, owner: string, id: string): Promise<Domain | undefined> {
  const [domain] = await readDomains(db, all => all.where('owner', '=', owner).where('id', '=', id))
  return domain
}

/** @throws AppError not_found */
export async function getDomain(db: Queries, owner: string, id: string): Promise<Domain> {
  const domain = await findDomain(db, owner, id)
  if (!domain) throw new AppError('not_found', `no domain with id ${id}`)
  return domain
}

export async function findDomainByName(
  db: Queries,
  owner: string,
  domain: string,
): Promise<Domain | undefined> {
  const [found] = await readDomains(db, all => all.where('owner', '=', owner).where('domain', '=', domain))
  return found
}

const selectByName = statement((db, { owner, domain }: { owner: string; domain: string }) =>
  activeDomains(db).selectAll().where('owner', '=', owner).where('domain', '=', domain),
)

export async function findSendingDomain(
  db: Queries,
  owner: string,
  domain: string,
): Promise<Pick<Domain, 'id' | 'domain' | 'verifiedAt'> | undefined> {
  const [row] = (await selectByName(db, { owner, domain })).rows
  return row && { id: row.id, domain: row.domain, verifiedAt: row.verified_at }
}

/** A domain of the server itself, such as that of the shared sending address. */
export function findApplianceDomain(db: Queries, domain: string): ReturnType<typeof findSendingDomain> {
  return findSendingDomain(db, APPLIANCE, domain)
}

export function listDomains(db: Queries, owner: string, page: Page): Promise<Listing<Domain>> {
  return pageOfActive(db, page, domains => domains.where('owner', '=', owner))
}

/**
 * A page of the domains of all owners except sandboxes, or of one owner, for operators.
 *
 * @param name only the domain of this name
 */
export function listDomainsOfAll(
  db: Queries,
  { owner, name }: { readonly owner?: string | undefined; readonly name?: string | undefined },
  page: Page,
): Promise<Listing<Domain>> {
  return pageOfActive(db, page, domains =>
    domains
      .where('is_sandbox', '=', 0)
      .$if(owner !== undefined, query => query.where('owner', '=', must(owner, 'owner')))
      .$if(name !== undefined, query => query.where('domain', '=', must(name, 'name'))),
  )
}

type Choose = (domains: ReturnType<typeof activeDomains>) => ReturnType<typeof activeDomains>

function pageOfActive(db: Queries, page: Page, choose: Choose): Promise<Listing<Domain>> {
  return snapshot(db, async db => {
    const matching = choose(activeDomains(db))
    const order = { columns: ['owner', 'domain'], kinds: ['text', 'text'], direction: 'asc' } as const
    const found = await keysetPage(matching, order, page, row => row)
    return { ...found, items: await withSelectors(db, found.items) }
  })
}

/** A domain of any owner except sandboxes. @throws AppError not_found */
export async function getDomainOfAny(db: Queries, id: string): Promise<Domain> {
  const [domain] = await readDomains(db, all => all.where('id', '=', id).where('is_sandbox', '=', 0))
  if (!domain) throw new AppError('not_found', `no domain with id ${id}`)
  return domain
}

export async function removeDomain(db: Queries, owner: string, id: string, now: number): Promise<boolean> {
  const result = await db
    .updateTable('domains')
    .set({ removed_at: now, next_check_at: null })
    .where('owner', '=', owner)
    .where('id', '=', id)
    .where('removed_at', 'is', null)
    .executeTakeFirst()
  return result.numUpdatedRows > 0n
}

/**
 * Active signing keys by domain id, RSA first. Removed domains included: their queued mail is still signed.
 *
 * Ed25519 signs only if its record was found: a verifier may treat a signature with a missing key as broken. Vouched domains need no
 * record.
 *
 * @throws Error if a key cannot be decrypted
 */
export async function readSigningKeys(
  db: Queries,
  domainIds: readonly string[],
  seal: KeyCipher,
): Promise<Map<string, DkimKey[]>> {
  const keys = new Map<string, DkimKey[]>()
  if (domainIds.length === 0) return keys
  const rows = await db
    .selectFrom('dkim_keys')
    .innerJoin('domains', 'domains.id', 'dkim_keys.domain_id')
    .selectAll('domains')
    .select(['dkim_keys.id as key_id', 'domain_id', 'selector', 'algorithm', 'private_key'])
    .where('domain_id', 'in', domainIds)
    .where('state', '=', 'active')
    .orderBy('algorithm', 'desc') // RSA first: every verifier supports it
    .execute()
  for (const row of rows) {
    if (row.algorithm === 'ed25519' && !isPublished(row, row.selector)) continue
    const { domain, selector, algorithm } = row
    const privateKey = seal.open(row.private_key, keyContext(row.key_id))
    keys.set(row.domain_id, [...(keys.get(row.domain_id) ?? []), { domain, selector, algorithm, privateKey }])
  }
  return keys
}

function isPublished(row: Selectable<DomainRow>, selector: string): boolean {
  return row.is_vouched === 1 || findingsOf(row)[dkimName(row, { name: selector })]?.status === 'verified'
}

function activeDomains(db: Queries) {
  return db.selectFrom('domains').where('removed_at', 'is', null)
}

/** Active ones. */
function readDomains(db: Queries, choose: Choose): Promise<Domain[]> {
  return snapshot(db, async db => withSelectors(db, await choose(activeDomains(db)).selectAll().execute()))
}

async function withSelectors(db: Queries, rows: readonly Selectable<DomainRow>[]): Promise<Domain[]> {
  if (rows.length === 0) return []
  const ids = rows.map(row => row.id)
  const keys = await db
    .selectFrom('dkim_keys')
    .select(['domain_id', 'selector', 'algorithm', 'public_key', 'state', 'retire_at', 'replaced_at'])
    .where('domain_id', 'in', ids)
    .orderBy('algorithm', 'desc')
    .orderBy('selector')
    .execute()
  return rows.map(row => ({
    id: row.id,
    owner: row.owner,
    domain: row.domain,
    verificationToken: row.verification_token,
    isVouched: row.is_vouched === 1,
    isSandbox: row.is_sandbox === 1,
    verifiedAt: row.verified_at,
    checkedAt: row.checked_at,
    findings: findingsOf(row),
    createdAt: row.created_at,
    nextCheckAt: row.next_check_at,
    failingSince: row.failing_since,
    failedChecks: row.failed_checks,
    watchedSince: row.watched_since,
    selectors: keys
      .filter(key => key.domain_id === row.id)
      .map(key => ({
        name: key.selector,
        algorithm: key.algorithm,
        publicKey: key.public_key,
        state: key.state,
        retireAt: key.retire_at,
        replacedAt: key.replaced_at,
      })),
  }))
}

function findingsOf({ findings }: Selectable<DomainRow>): Domain['findings'] {
  return findings === null ? {} : (JSON.parse(findings) as Domain['findings'])
}

export interface KeyCipher {
  /** @param place bound to the ciphertext, e.g. `dkim_keys/private_key/<id>` */
  seal(text: string, place: string): string
  /** Returns unencrypted text unchanged. @throws Error if it cannot be decrypted */
  open(text: string, place: string): string
}

export function keyContext(keyId: string): string {
  return `dkim_keys/private_key/${keyId}`
}

/** A domain due later than this was scheduled by a clock that was ahead. */
export const MAX_CHECK_INTERVAL_MS = 86_400_000

/** Longest due first. Vouched and removed domains are never due. */
export function listDueForCheck(db: Queries, now: number, limit: number): Promise<Domain[]> {
  return readDomains(db, all =>
    all
      .where('next_check_at', 'is not', null)
      .where(e => e.or([e('next_check_at', '<=', now), e('next_check_at', '>', now + MAX_CHECK_INTERVAL_MS)]))
      .orderBy('next_check_at')
      .limit(limit),
  )
}

export async function markVouched(db: Queries, id: string, verifiedAt: number): Promise<void> {
  const row = { is_vouched: flag(true), verified_at: verifiedAt, next_check_at: null, failing_since: null }
  await db.updateTable('domains').set(row).where('id', '=', id).execute()
}

export async function recordCheck(
  db: Queries,
  id: string,
  check: VerificationState & { readonly checkedAt: number; readonly findings: Domain['findings'] },
): Promise<void> {
  await db
    .updateTable('domains')
    .set({
      verified_at: check.verifiedAt,
      checked_at: check.checkedAt,
      findings: JSON.stringify(check.findings),
      next_check_at: check.nextCheckAt,
      failing_since: check.failingSince,
      failed_checks: check.failedChecks,
      watched_since: check.watchedSince,
    })
    .where('id', '=', id)
    .execute()
}
