/** Adds, verifies and removes sending domains. */
import { AppError } from '../../core/errors.js'
import { APPLIANCE } from '../../core/owner.js'
import { SYSTEM, type Actor } from '../../core/actor.js'
import { recordActivity } from '../../events/activity-store.js'
import { asciiDomain } from '../../mail/address.js'
import { generateSelectorPairs, renewRetiredKeys } from './dkim/dkim-keys.js'
import { isOwnName, type DomainParts } from './domain-parts.js'
import {
  type Domain,
  getDomain,
  findDomainByName,
  insertDomain,
  markVouched,
  recordCheck,
  removeDomain,
} from './domain-store.js'
import { recordCheckResult } from './recheck-domains.js'
import { checkDomain, firstCheckAt, resolverFor } from './verify-domain.js'

/** How a domain is verified: by DNS records, by the operator (LAN domains, trials), or as part of a sandbox. */
export type DomainProof = 'dns' | 'vouched' | 'sandbox'

/**
 * @param mayTakeOwnNames an operator of all workspaces may give the appliance's own names to a workspace
 * @throws AppError validation_error, duplicate
 */
export async function addDomain(
  parts: DomainParts,
  owner: string,
  name: string,
  actor: Actor,
  proof: DomainProof = 'dns',
  mayTakeOwnNames = false,
): Promise<Domain> {
  const domain = readDomainName(name)
  if (!mayTakeOwnNames && parts.ownNames && isOwnName(parts.ownNames, domain))
    throw new AppError(
      'validation_error',
      `${domain} is a name of the mail server itself; only its operators can add it`,
      { path: 'domain' },
    )
  const isVouched = proof === 'vouched'
  // Generated outside the transaction: two RSA keys take about 200 ms.
  const keys = await generateSelectorPairs(parts)
  const now = parts.clock.now()
  const id = parts.newId()
  return parts.database.write(async tx => {
    if (await findDomainByName(tx.db, owner, domain))
      throw new AppError('duplicate', `domain ${domain} already exists`, { path: 'domain' })
    await insertDomain(
      tx.db,
      {
        id,
        owner,
        domain,
        verificationToken: parts.random.bytes(16).toString('hex'),
        isVouched,
        isSandbox: proof === 'sandbox',
        verifiedAt: proof === 'dns' ? null : now,
        createdAt: now,
        nextCheckAt: proof === 'dns' ? firstCheckAt(now) : null,
      },
      keys,
      parts.seal,
    )
    await recordActivity(tx, { workspaceId: owner, actor }, now, {
      action: 'domain.added',
      subject: domain,
      details: { id, vouched: isVouched },
    })
    tx.changed('domains')
    const added = await getDomain(tx.db, owner, id)
    if (!added.isSandbox) return added
    const { findings } = await checkDomain(added, parts.dkimZone, resolverFor(added, parts))
    await recordCheck(tx.db, id, { ...added, checkedAt: now, findings })
    return { ...added, checkedAt: now, findings }
  })
}

/**
 * Checks the records now and stores the result. A vouched domain stays verified; so does one whose name servers do not answer.
 *
 * @throws AppError not_found
 */
export async function verifyDomain(
  parts: DomainParts,
  owner: string,
  id: string,
  actor: Actor,
): Promise<Domain> {
  await renewRetiredKeys(parts, parts.clock.now(), id)
  const domain = await getDomain(parts.database.reader, owner, id)
  const check = await checkDomain(domain, parts.dkimZone, resolverFor(domain, parts))
  await recordCheckResult(parts, domain, check, actor)
  return getDomain(parts.database.reader, owner, id)
}

/**
 * The operator declares the domain verified: DNS no longer decides, and it is not checked any more. A vouched domain is unchanged.
 *
 * @throws AppError not_found, conflict for a sandbox's domain, which needs no verification
 */
export async function vouchForDomain(
  parts: DomainParts,
  owner: string,
  id: string,
  actor: Actor,
): Promise<Domain> {
  const now = parts.clock.now()
  return parts.database.write(async tx => {
    const before = await getDomain(tx.db, owner, id)
    if (before.isSandbox) throw new AppError('conflict', 'a domain of a sandbox is always verified')
    if (before.isVouched) return before
    await markVouched(tx.db, id, before.verifiedAt ?? now)
    tx.changed('domains')
    await recordActivity(tx, { workspaceId: owner, actor }, now, {
      action: 'domain.vouched',
      subject: before.domain,
      details: { id, verified: before.verifiedAt !== null },
    })
    return getDomain(tx.db, owner, id)
  })
}

/** Queued mail is still signed and sent. @throws AppError not_found */
export async function deleteDomain(
  parts: DomainParts,
  owner: string,
  id: string,
  actor: Actor,
): Promise<void> {
  const now = parts.clock.now()
  await parts.database.write(async tx => {
    const { domain } = await getDomain(tx.db, owner, id)
    await removeDomain(tx.db, owner, id, now)
    tx.changed('domains')
    await recordActivity(tx, { workspaceId: owner, actor }, now, {
      action: 'domain.removed',
      subject: domain,
      details: { id },
    })
  })
}

/** The server's own domain, such as that of the shared sending address; created on first use. */
export async function ensureApplianceDomain(parts: DomainParts, name: string): Promise<Domain> {
  const known = await findDomainByName(parts.database.reader, APPLIANCE, readDomainName(name))
  return known ?? addDomain(parts, APPLIANCE, name, SYSTEM, 'vouched', true)
}

/** RFC 1035 §2.3.4 allows 253 characters; names below the domain need room. */
const MAX_DOMAIN_LENGTH = 220

/** @returns A-labels, lower case. @throws AppError validation_error */
export function readDomainName(text: string): string {
  const domain = asciiDomain(text.trim().replace(/\.$/, ''))
  const isName = domain !== undefined && domain.length <= MAX_DOMAIN_LENGTH
  if (!isName)
    throw new AppError(
      'validation_error',
      `${text.slice(0, 300)} is not a valid domain name; use one such as example.com`,
      {
        path: 'domain',
      },
    )
  return domain
}
