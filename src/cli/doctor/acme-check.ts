/** The certificate from an ACME server: the stored one, and why the last attempt to get one failed. Asks nobody. Fails: never. */
import { X509Certificate } from 'node:crypto'
import { AcmeFiles } from '../../certificates/acme/acme-files.js'
import { acmeNames } from '../../certificates/acme/names.js'
import { mayTryAt, renewAt } from '../../certificates/acme/renewal-plan.js'
import type { Config } from '../../config/config.js'
import { describeError } from '../../core/errors.js'
import { isoTime } from '../../core/moments.js'
import type { Clock } from '../../world/time/clock.js'
import { fail, ok, warn, type Check } from './check.js'

export async function acmeChecks(config: Config, { now }: Pick<Clock, 'now'>): Promise<Check[]> {
  const { tls, dataDir } = config
  if (!tls.acme) return []
  const name = 'certificate'
  const files = new AcmeFiles(dataDir, tls.acmeDirectory)
  const names = acmeNames(config).join(', ')
  try {
    const [state, pair] = [await files.readState(), await files.readCertificate()]
    const next =
      state.fault === null
        ? undefined
        : `the last attempt failed: ${state.fault}; the next one is at ${isoTime(mayTryAt(state, now()))}`
    const mend = 'fix that, then retry at once: systemctl reload postroad (docs/tls.md)'
    if (!pair)
      return [
        next === undefined
          ? warn(name, `no certificate for ${names} yet`, 'start the server, which gets one')
          : fail(name, next, mend),
      ]
    const certificate = new X509Certificate(pair.cert)
    const [validFrom, expiresAt] = [Date.parse(certificate.validFrom), Date.parse(certificate.validTo)]
    const text = `for ${names}, until ${isoTime(expiresAt)}`
    const also = next === undefined ? '' : `; ${next}`
    if (expiresAt <= now()) return [fail(name, `${text}: it has expired${also}`, mend)]
    if (validFrom > now())
      return [
        fail(
          name,
          `${text}: it is not valid before ${isoTime(validFrom)}`,
          'check the clock of this machine',
        ),
      ]
    const uncovered = acmeNames(config).filter(one => certificate.checkHost(one) === undefined)
    if (uncovered.length > 0)
      return [
        fail(
          name,
          `it is not for ${uncovered.join(', ')}${also}`,
          'systemctl reload postroad, which gets another one',
        ),
      ]
    if (next !== undefined) return [warn(name, `${text}; ${next}`, mend)]
    const renewal = renewAt({ validFrom, expiresAt, coversNames: true }, state.suggested?.at)
    return [ok(name, `${text}; it will be renewed from ${isoTime(renewal)} on`)]
  } catch (error) {
    return [fail(name, describeError(error), `check ${files.folder}`)]
  }
}
