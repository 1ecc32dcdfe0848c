/**
 * Generates the DKIM keys of a sending domain and renews retired ones.
 *
 * A domain has a pair of selectors for RSA and one for Ed25519: one signs, the other is already published for the next rotation. Retired
 * keys are renewed at start-up, hourly, and before a domain is verified or rotated. The selector keeps its name, so a CNAME still works; an
 * owner who publishes the key in a TXT record must update it. Standards: RFC 8301 §3.2 (RSA-2048), RFC 8463 (Ed25519).
 */
import { publicKeyText } from '../../../mail/dkim/dkim-record.js'
import type { DkimKey } from '../../../mail/dkim/dkim-sign.js'
import type { DomainParts } from '../domain-parts.js'
import { dkimName, type KeyPairText, type NewDkimKey } from '../domain-store.js'
import { listRetired, replaceRetired, changeFindings, type RetiredKey } from './dkim-key-store.js'
import { dkimTarget } from '../dns-records.js'

const SELECTORS = [
  { ending: '1', algorithm: 'rsa', state: 'active' },
  { ending: '2', algorithm: 'rsa', state: 'standby' },
  { ending: 'e1', algorithm: 'ed25519', state: 'active' },
  { ending: 'e2', algorithm: 'ed25519', state: 'standby' },
] as const

/** Takes about 200 ms; do not call it in a transaction. */
export async function generateSelectorPairs({
  random,
  newId,
}: Pick<DomainParts, 'random' | 'newId'>): Promise<NewDkimKey[]> {
  const tag = random.bytes(5).toString('hex')
  return Promise.all(
    SELECTORS.map(async ({ ending, algorithm, state }) => ({
      id: newId(),
      name: `pr${tag}${ending}`,
      algorithm,
      state,
      retireAt: null,
      replacedAt: null,
      ...(await generateKey(random, algorithm)),
    })),
  )
}

export async function generateKey(
  random: DomainParts['random'],
  algorithm: DkimKey['algorithm'],
): Promise<KeyPairText> {
  const { privateKey, publicKey } = await random.keyPair(algorithm)
  return {
    publicKey: publicKeyText(publicKey),
    privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  }
}

/** An RSA key takes 100 ms, and the server's start waits for this. */
const MAX_PER_RUN = 50

/**
 * @param domainId only this domain's keys; default: up to 50 of all domains, longest due first
 * @returns how many were retired
 */
export async function renewRetiredKeys(parts: DomainParts, now: number, domainId?: string): Promise<number> {
  const retired = await listRetired(parts.database.reader, now, MAX_PER_RUN, domainId)
  await Promise.all(retired.map(key => renew(parts, key, now)))
  return retired.length
}

async function renew(parts: DomainParts, retired: RetiredKey, now: number): Promise<void> {
  const key = await generateKey(parts.random, retired.algorithm)
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
