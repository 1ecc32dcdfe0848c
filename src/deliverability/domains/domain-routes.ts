import Type, { type Static } from 'typebox'
import { DONE, Done, Id, Moment, MomentOrNull } from '../../http/answer/answer-fields.js'
import { PageQuery } from '../../http/pagination.js'
import { listRoute, route, type Route } from '../../http/route.js'
import { getDomain, listDomains, FINDING_STATUSES, KEY_STATES, type Domain } from './domain-store.js'
import type { DomainParts } from './domain-parts.js'
import { addDomain, deleteDomain, verifyDomain } from './domains.js'
import { rotateDomain } from './dkim/rotate-dkim.js'
import { isoTime, isoTimeOrNull } from '../../core/moments.js'
import { DKIM_ALGORITHMS } from '../../mail/dkim/dkim-sign.js'
import { dnsRecords, RECORD_PURPOSES, RECORD_TYPES } from './dns-records.js'

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
    found: Type.Array(Type.String(), { description: 'Values DNS returned at the last check.' }),
    required: Type.Boolean({ description: 'Required for verification.' }),
    algorithm: Type.Optional(
      Type.Enum([...DKIM_ALGORITHMS], {
        description: 'DKIM records only. Ed25519 signs once its record is found.',
      }),
    ),
    key_state: Type.Optional(
      Type.Enum([...KEY_STATES], {
        description:
          'DKIM records only: active (signs), standby (for the next rotation) or retiring (previous key, still published).',
      }),
    ),
    alternative: Type.Optional(
      Type.Object(
        { type: Type.Enum(['TXT']), name: Type.String(), value: Type.String() },
        {
          description: 'Accepted instead of this record.',
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
    vouched: Type.Boolean({ description: 'Verified by the operator, without DNS.' }),
    is_sandbox: Type.Boolean({
      description: 'Added with a sandbox key; verified without DNS, for the sandbox only.',
    }),
    dns_records: Type.Array(DnsRecordSchema),
    created_at: Moment(),
    verified_at: MomentOrNull(),
    checked_at: MomentOrNull(),
    next_check_at: MomentOrNull({
      description: 'Next automatic check; null for vouched and sandbox domains.',
    }),
    failing_since: MomentOrNull({
      description: 'When a verified domain first failed its checks; after 3 days it loses its verification.',
    }),
  },
  { title: 'Domain' },
)

export function domainRoutes(parts: DomainParts): Route[] {
  const { database } = parts
  return [
    listRoute({
      method: 'GET',
      path: '/domains',
      access: 'domains:read',
      operationId: 'listDomains',
      chapter: 'Domains',
      summary: 'List sending domains.',
      query: PageQuery,
      item: DomainSchema,
      async handle({ principal }, page) {
        const found = await listDomains(database.reader, principal.workspaceId, page)
        return { ...found, items: found.items.map(domain => domainToApi(domain, parts)) }
      },
    }),
    route({
      method: 'POST',
      path: '/domains',
      access: 'domains:write',
      operationId: 'addDomain',
      chapter: 'Domains',
      summary: 'Add a sending domain.',
      description:
        'Returns the DNS records to publish, with two DKIM keys for RSA and two for Ed25519. Each DKIM CNAME has a TXT `alternative` ' +
        'that is accepted instead. Publish the required records, then call verify. With the optional Ed25519 records, mail ' +
        'carries a second signature. With a sandbox key the domain is verified immediately, for the sandbox ' +
        'only.',
      body: NewDomainBody,
      response: DomainSchema,
      status: 201,
      errors: ['duplicate'],
      handle: async ({ principal, body }) =>
        domainToApi(
          await addDomain(
            parts,
            principal.workspaceId,
            body.domain,
            principal.actor,
            principal.isSandbox ? 'sandbox' : 'dns',
          ),
          parts,
        ),
    }),
    route({
      method: 'GET',
      path: '/domains/:id',
      access: 'domains:read',
      operationId: 'getDomain',
      chapter: 'Domains',
      summary: 'Get a sending domain.',
      params: DomainParams,
      response: DomainSchema,
      errors: ['not_found'],
      async handle({ principal, params }) {
        return domainToApi(await getDomain(database.reader, principal.workspaceId, params.id), parts)
      },
    }),
    route({
      method: 'POST',
      path: '/domains/:id/verify',
      access: 'domains:write',
      operationId: 'verifyDomain',
      chapter: 'Domains',
      summary: 'Verify a sending domain.',
      description:
        'Checks the DNS records now. Returns 200 whether or not the domain is verified; each record shows its result. Records are ' +
        'also rechecked automatically: frequently after the domain was added or verify was called, later daily. A verified domain with ' +
        'wrong records keeps its verification for 3 days, unless verify is called.',
      params: DomainParams,
      response: DomainSchema,
      errors: ['not_found'],
      handle: async ({ principal, params }) =>
        domainToApi(await verifyDomain(parts, principal.workspaceId, params.id, principal.actor), parts),
    }),
    route({
      method: 'POST',
      path: '/domains/:id/rotate-dkim',
      access: 'domains:write',
      operationId: 'rotateDomainKeys',
      chapter: 'Domains',
      summary: "Rotate a domain's DKIM keys.",
      description:
        'Starts signing with the standby keys, whose records must be in DNS; otherwise the response is 409 and names the missing record. ' +
        'The previous keys stay published for 7 days (`key_state` retiring). Until then another rotation is rejected with 409; ' +
        'afterwards their selectors get new keys and become the standbys. CNAMEs need no change; with TXT records, publish the new ' +
        'values once `dns_records` shows them.',
      params: DomainParams,
      response: DomainSchema,
      errors: ['not_found', 'conflict'],
      handle: async ({ principal, params }) =>
        domainToApi(await rotateDomain(parts, principal.workspaceId, params.id, principal.actor), parts),
    }),
    route({
      method: 'DELETE',
      path: '/domains/:id',
      access: 'domains:write',
      operationId: 'removeDomain',
      chapter: 'Domains',
      summary: 'Remove a sending domain.',
      description: 'Mail already accepted is still signed and sent.',
      params: DomainParams,
      response: Done,
      errors: ['not_found'],
      async handle({ principal, params }) {
        await deleteDomain(parts, principal.workspaceId, params.id, principal.actor)
        return DONE
      },
    }),
  ]
}

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
