/** The server's certificate in the admin API: where it comes from, how long it is valid, and its renewal by ACME. */
import { X509Certificate } from 'node:crypto'
import Type, { type Static } from 'typebox'
import { AppError } from '../../core/errors.js'
import { isoTime } from '../../core/moments.js'
import type { Services } from '../../db/services.js'
import { recordAction } from '../../events/activity-store.js'
import { adminListRoute, adminRoute } from '../../http/admin-route.js'
import { Moment, orNull, TextOrNull } from '../../http/answer/answer-fields.js'
import { listingOf, PageQuery } from '../../http/pagination.js'
import type { Route } from '../../http/route.js'
import { RENEWAL_JOB, type Certificates } from '../open-certificates.js'
import type { RunningJobs } from './job-routes.js'

export interface CertificateParts extends Pick<Services, 'database' | 'clock'> {
  readonly jobs: RunningJobs | undefined
  /** Of the running server; undefined if none runs. */
  readonly certificates: Pick<Certificates, 'certificate' | 'acme' | 'standing'> | undefined
  readonly acmeDirectory: string
}

const CertificateSchema = Type.Object(
  {
    names: Type.Array(Type.String(), { description: 'DNS names and IP addresses that it is for.' }),
    issuer: Type.String(),
    source: Type.Enum(['acme', 'files', 'self_signed']),
    valid_from: Moment(),
    expires_at: Moment(),
    days_left: Type.Integer({ description: 'Whole days; negative after expiry.' }),
    fault: TextOrNull({ description: 'What is wrong with it, e.g. that it expires soon.' }),
    acme: orNull(
      Type.Object({
        directory: Type.String({ description: 'URL of the CA.' }),
        last_error: TextOrNull({ description: 'Why the last attempt to get a certificate failed.' }),
        next_attempt_at: Moment({ description: 'Earliest time of the next attempt, if one is due.' }),
      }),
      { description: 'Null if tls.acme is off.' },
    ),
  },
  { title: 'Certificate' },
)

export function certificateRoutes(parts: CertificateParts): Route[] {
  return [
    adminListRoute({
      method: 'GET',
      path: '/certificates',
      access: { permission: 'system:read', scope: 'appliance' },
      operationId: 'listCertificates',
      chapter: 'System',
      summary: 'List certificates in use.',
      query: PageQuery,
      item: CertificateSchema,
      errors: ['unavailable'],
      handle: async (_request, page) =>
        listingOf(
          [await certificateToApi(parts)],
          page,
          one => one,
          () => '',
        ),
    }),
    adminRoute({
      method: 'POST',
      path: '/certificates/renew',
      access: { permission: 'system:write', scope: 'appliance' },
      operationId: 'renewCertificate',
      chapter: 'System',
      summary: 'Order a new certificate by ACME.',
      description:
        'Answers without waiting for the CA; GET shows the result. Attempts are limited per day, since CAs limit them.',
      response: CertificateSchema,
      status: 202,
      errors: ['conflict', 'unavailable'],
      async handle({ operator }) {
        const { acme } = running(parts)
        if (!acme) throw new AppError('conflict', 'certificates are ordered only if tls.acme is on')
        const mayTryAt = await acme.want()
        if (mayTryAt > parts.clock.now())
          throw new AppError(
            'conflict',
            `the CA was asked often enough today; a new certificate is ordered at ${isoTime(mayTryAt)}`,
          )
        await parts.jobs?.run(RENEWAL_JOB)
        await recordAction(parts, operator.actor, 'certificate.ordered', parts.acmeDirectory)
        return certificateToApi(parts)
      },
    }),
  ]
}

/** @throws AppError unavailable */
function running({ certificates }: CertificateParts): NonNullable<CertificateParts['certificates']> {
  if (!certificates) throw new AppError('unavailable', 'the server is not running')
  return certificates
}

async function certificateToApi(parts: CertificateParts): Promise<Static<typeof CertificateSchema>> {
  const { certificate, acme, standing } = running(parts)
  const { subjectAltName = '', issuer } = new X509Certificate(certificate.pair().cert)
  const { isSelfSigned, daysLeft, fault } = standing()
  const status = await acme?.status()
  return {
    names: subjectAltName
      .split(', ')
      .filter(name => name !== '')
      .map(name => name.replace(/^(DNS|IP Address):/, '')),
    issuer: issuer.replaceAll('\n', ', '),
    source: isSelfSigned ? 'self_signed' : acme ? 'acme' : 'files',
    valid_from: isoTime(certificate.validFrom),
    expires_at: isoTime(certificate.expiresAt),
    days_left: daysLeft,
    fault: fault ?? null,
    acme: status
      ? {
          directory: parts.acmeDirectory,
          last_error: status.fault,
          next_attempt_at: isoTime(status.mayTryAt),
        }
      : null,
  }
}
