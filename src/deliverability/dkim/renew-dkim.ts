/**
 * Gives selectors whose key has retired a fresh one, which is the standby for the next rotation.
 *
 * Called when the server opens, every hour, and before a domain is verified or rotated. The name of the record stays, so a CNAME needs
 * nobody's hand; where the owner publishes the key itself, its record is pending until the new value is there.
 */
import { listRetired, replaceRetired, changeFindings, type RetiredKey } from './dkim-key-store.js'
import { makeKey } from './dkim-keys.js'
import { dkimTarget } from '../domains/dns-records.js'
import type { DomainParts } from '../domains/domain-parts.js'
import { dkimName } from '../domains/domain-store.js'

/** RSA keys take 100 ms each, and the server wants to start. */
const AT_ONCE = 50

/**
 * @param domainId only this domain's; else of all, at most 50, longest due first
 * @returns how many there were
 */
export async function renewRetired(parts: DomainParts, now: number, domainId?: string): Promise<number> {
  const retired = await listRetired(parts.database.reader, now, AT_ONCE, domainId)
  await Promise.all(retired.map(key => renew(parts, key, now)))
  return retired.length
}

async function renew(parts: DomainParts, retired: RetiredKey, now: number): Promise<void> {
  const key = await makeKey(parts.random, retired.algorithm)
  const name = dkimName(retired, retired)
  const target = dkimTarget(retired, parts.dkimZone)
  await parts.database.write(async tx => {
    if (!(await replaceRetired(tx.db, retired.id, key, now, parts.seal))) return
    await changeFindings(tx.db, retired.domainId, ({ [name]: finding, ...others }) => {
      const isAlias = finding?.found.some(record => record.toLowerCase() === target) ?? false
      return finding && isAlias ? { ...others, [name]: finding } : others
    })
  })
}
