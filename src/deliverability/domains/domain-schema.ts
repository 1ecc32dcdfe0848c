/** What the API takes and gives of a sending domain. */
import Type, { type Static } from 'typebox'
import { isoTime, isoTimeOrNull } from '../../core/moments.js'
import { Id, Moment, MomentOrNull } from '../../http/answer/answer-fields.js'
import { DKIM_ALGORITHMS } from '../../mail/dkim/dkim-sign.js'
import { dnsRecords, RECORD_PURPOSES, RECORD_TYPES } from './dns-records.js'
import type { DomainParts } from './domain-parts.js'
import { FINDING_STATUSES, KEY_STATES, type Domain } from './domain-store.js'

export const NewDomainBody = Type.Object(
  { domain: Type.String({ minLength: 1, maxLength: 255, description: 'E.g. `example.com`.' }) },
  { additionalProperties: false, title: 'NewDomain' },
)

export const DomainParams = Type.Object({ id: Type.String({ maxLength: 64 }) })

const DnsRecordSchema = Type.Object(
  {
    type: Type.Enum([...RECORD_TYPES]),
    name: Type.String(),
    value: Type.String(),
    ttl: Type.Integer({ description: 'Seconds.' }),
    purpose: Type.Enum([...RECORD_PURPOSES]),
    status: Type.Enum([...FINDING_STATUSES]),
    found: Type.Array(Type.String(), { description: 'What DNS held when last asked.' }),
    required: Type.Boolean({ description: 'Verification waits for it.' }),
    algorithm: Type.Optional(
      Type.Enum([...DKIM_ALGORITHMS], {
        description: 'Of a DKIM record; Ed25519 signs once its record is found.',
      }),
    ),
    key_state: Type.Optional(
      Type.Enum([...KEY_STATES], {
        description:
          'Of a DKIM record: active (signs), standby (for the next rotation) or retiring (signed before, still published).',
      }),
    ),
    alternative: Type.Optional(
      Type.Object(
        { type: Type.Enum(['TXT']), name: Type.String(), value: Type.String() },
        {
          description: 'Accepted in its place.',
        },
      ),
    ),
  },
  { title: 'DnsRecord' },
)

export const DomainSchema = Type.Object(
  {
    id: Id(),
    domain: Type.String(),
    verified: Type.Boolean(),
    vouched: Type.Boolean({ description: 'The operator declared it verified without DNS.' }),
    is_sandbox: Type.Boolean({
      description: 'Added with a sandbox key: verified without DNS, for the sandbox only.',
    }),
    dns_records: Type.Array(DnsRecordSchema),
    created_at: Moment(),
    verified_at: MomentOrNull(),
    checked_at: MomentOrNull(),
    next_check_at: MomentOrNull({
      description: 'When DNS is asked again by itself; null for a vouched domain and in the sandbox.',
    }),
    failing_since: MomentOrNull({
      description:
        'Of a verified domain: since when its records are found wrong. 3 days later it is not verified any more.',
    }),
  },
  { title: 'Domain' },
)

export function domainToApi(
  domain: Domain,
  { dkimZone, reportAddress }: Pick<DomainParts, 'dkimZone' | 'reportAddress'>,
): Static<typeof DomainSchema> {
  return {
    id: domain.id,
    domain: domain.domain,
    verified: domain.verifiedAt !== null,
    vouched: domain.isVouched,
    is_sandbox: domain.isSandbox,
    dns_records: dnsRecords(domain, dkimZone, reportAddress).map(({ keyState, ...record }) => ({
      ...record,
      found: [...record.found],
      ...(keyState ? { key_state: keyState } : {}),
    })),
    created_at: isoTime(domain.createdAt),
    verified_at: isoTimeOrNull(domain.verifiedAt),
    checked_at: isoTimeOrNull(domain.checkedAt),
    next_check_at: isoTimeOrNull(domain.nextCheckAt),
    failing_since: isoTimeOrNull(domain.failingSince),
  }
}
