/** How the certificate from an ACME server stands: what is kept of it, and why the last attempt failed. Asks nobody. Fails: never. */
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
        : `the last attempt failed: ${state.fault}; the next is made ${isoTime(mayTryAt(state, now()))}`
    const mend = 'mend that, then systemctl reload postroad, which tries at once; docs/tls.md'
    if (!pair)
      return [
        next === undefined ? warn(name, `none for ${names} yet`, 'start the server') : fail(name, next, mend),
      ]
    const certificate = new X509Certificate(pair.cert)
    const [validFrom, expiresAt] = [Date.parse(certificate.validFrom), Date.parse(certificate.validTo)]
    const text = `for ${names}, until ${isoTime(expiresAt)}`
    if (expiresAt <= now()) return [fail(name, `${text}: it is over. ${next ?? ''}`, mend)]
    if (next !== undefined) return [warn(name, `${text}; ${next}`, mend)]
    const renewal = renewAt({ validFrom, expiresAt, coversNames: true }, state.suggested?.at)
    return [ok(name, `${text}; renewed from ${isoTime(renewal)} on`)]
  } catch (error) {
    return [fail(name, describeError(error), `look at ${files.folder}`)]
  }
}
