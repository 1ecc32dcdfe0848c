/**
 * The certificate that was obtained by ACME, and the attempts to get one, as the database has them.
 *
 * Used by `postroad doctor`. Never changes anything. Rejects as the database does.
 */
import { X509Certificate } from 'node:crypto'
import { readAcmeState, readChain } from '../../certificates/acme/acme-store.js'
import { acmeNames } from '../../certificates/acme/names.js'
import { mayTryAt, renewAt } from '../../certificates/acme/renewal-plan.js'
import { listNodes } from '../../cluster/node-store.js'
import { isoTime } from '../../core/moments.js'
import { snapshot } from '../../db/snapshot.js'
import type { Appliance } from '../appliance.js'
import { type Check, fail, ok, warn } from './check.js'

const NAME = 'certificate'
const RETRY = 'fix that, then retry at once: systemctl reload postroad (docs/tls.md)'

/** Nothing without ACME. */
export async function acmeChecks({ config, database, world }: Appliance): Promise<Check[]> {
  const { acme, acmeDirectory } = config.tls
  if (!acme) return []
  const { reader } = database
  const now = world.clock.now()
  const names = acmeNames(config, await listNodes(reader))
  const { state, chain } = await snapshot(reader, async db => ({
    state: await readAcmeState(db, acmeDirectory),
    chain: await readChain(db, acmeDirectory),
  }))
  const next =
    state.fault === null
      ? undefined
      : `the last attempt failed: ${state.fault}; the next one is at ${isoTime(mayTryAt(state, now))}`
  if (chain === undefined)
    return [
      next === undefined
        ? warn(NAME, `no certificate for ${names.join(', ')} yet`, 'start the server, which gets one')
        : fail(NAME, next, RETRY),
    ]
  return [checkChain(chain, names, next, state.suggested?.at, now)]
}

/** @param next why the last attempt failed, and when the next one is */
function checkChain(
  chain: string,
  names: readonly string[],
  next: string | undefined,
  suggestedAt: number | undefined,
  now: number,
): Check {
  const certificate = parse(chain)
  if (!certificate) return fail(NAME, 'the stored certificate is damaged', RETRY)
  const [validFrom, expiresAt] = [Date.parse(certificate.validFrom), Date.parse(certificate.validTo)]
  const text = `for ${names.join(', ')}, until ${isoTime(expiresAt)}`
  const also = next === undefined ? '' : `; ${next}`
  if (expiresAt <= now) return fail(NAME, `${text}: it has expired${also}`, RETRY)
  if (validFrom > now)
    return fail(
      NAME,
      `${text}: it is not valid before ${isoTime(validFrom)}`,
      'check the clock of this machine',
    )
  const uncovered = names.filter(one => certificate.checkHost(one) === undefined)
  if (uncovered.length > 0)
    return fail(
      NAME,
      `it is not for ${uncovered.join(', ')}${also}`,
      'systemctl reload postroad, which gets another one',
    )
  if (next !== undefined) return warn(NAME, `${text}; ${next}`, RETRY)
  const renewal = renewAt({ validFrom, expiresAt, coversNames: true }, suggestedAt)
  return ok(NAME, `${text}; it will be renewed from ${isoTime(renewal)} on`)
}

function parse(chain: string): X509Certificate | undefined {
  try {
    return new X509Certificate(chain)
  } catch {
    return undefined
  }
}
