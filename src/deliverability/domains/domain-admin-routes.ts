/** Sending domains of all workspaces, and the DKIM zone, for operators. */
import Type, { type Static } from 'typebox'
import { AppError } from '../../core/errors.js'
import { isAppliance } from '../../core/owner.js'
import type { Queries } from '../../db/database.js'
import { adminDownloadRoute, adminListRoute, adminRoute } from '../../http/admin-route.js'
import { DONE, Done } from '../../http/answer/answer-fields.js'
import { mayOperate, requirePermission, type OperatorPrincipal } from '../../http/operator.js'
import { cursorQuery } from '../../http/pagination.js'
import { ALL_WORKSPACES, type OperatorPermission } from '../../http/roles.js'
import type { Route } from '../../http/route.js'
import { delegationLine, wholeZoneFile, zoneFile, zoneRecords } from './dkim/dkim-zone.js'
import { rotateDomain } from './dkim/rotate-dkim.js'
import { dnsRecords, domainZone, reportPermission, TTL_SECONDS, zoneLine } from './dns-records.js'
import type { DomainParts } from './domain-parts.js'
import { DomainParams, DomainSchema, domainToApi, NewDomainBody } from './domain-routes.js'
import { getDomainOfAny, listDomainsOfAll, type Domain } from './domain-store.js'
import { addDomain, deleteDomain, readDomainName, verifyDomain, vouchForDomain } from './domains.js'

export interface DomainAdminParts {
  readonly domains: DomainParts
  readonly hostname: string
  /** Whether this appliance is the name server of the DKIM zone (`dns.listen`). */
  readonly servesDkimZone: boolean
  readonly hasWorkspace: (db: Queries, id: string) => Promise<boolean>
}

const WorkspaceId = Type.String({
  description: 'Workspace; `system` for the domain of the shared sending address.',
})

const OperatedDomainSchema = Type.Object(
  { ...DomainSchema.properties, workspace_id: WorkspaceId },
  { title: 'OperatedDomain' },
)

const DkimZoneSchema = Type.Object(
  {
    name: Type.String({ description: '`dns.dkim_zone`: the zone that DKIM CNAMEs point into.' }),
    served_here: Type.Boolean({ description: 'Whether this appliance is its name server (`dns.listen`).' }),
    delegation: Type.String({
      description: 'Record for the parent zone if it is served here, in zone file syntax.',
    }),
  },
  { title: 'DkimZone' },
)

const DomainDetailsSchema = Type.Object(
  {
    ...OperatedDomainSchema.properties,
    dkim_zone: DkimZoneSchema,
    report_address: Type.String({ description: 'Receives DMARC reports.' }),
    report_permission: Type.Union([Type.String(), Type.Null()], {
      description:
        "Record for the zone of the report address, in zone file syntax; without it receivers don't send DMARC reports there. Null if " +
        'the address lies within the domain.',
    }),
    zone_file: Type.String({ description: "The domain's records in zone file syntax." }),
  },
  { title: 'DomainDetails' },
)

const ZoneSchema = Type.Object(
  {
    ...DkimZoneSchema.properties,
    records: Type.Array(
      Type.Object({
        name: Type.String(),
        type: Type.Enum(['TXT']),
        ttl: Type.Integer(),
        value: Type.String(),
      }),
    ),
  },
  { title: 'DkimZoneRecords' },
)

export type OperatedDomain = Static<typeof OperatedDomainSchema>
export type DomainDetails = Static<typeof DomainDetailsSchema>
export type DkimZoneRecords = Static<typeof ZoneSchema>

const access = (permission: 'domains:read' | 'domains:write') => ({ permission, scope: 'record' }) as const

export function domainAdminRoutes(parts: DomainAdminParts): Route[] {
  const { domains, hostname, hasWorkspace } = parts
  const { database, clock, dkimZone } = domains
  const load = async (operator: OperatorPrincipal, permission: OperatorPermission, id: string) => {
    const domain = await getDomainOfAny(database.reader, id)
    requirePermission(operator, permission, isAppliance(domain.owner) ? ALL_WORKSPACES : domain.owner)
    return domain
  }
  return [
    adminListRoute({
      method: 'GET',
      path: '/domains',
      access: { permission: 'domains:read', scope: 'query' },
      operationId: 'listDomainsOfWorkspaces',
      chapter: 'Domains',
      summary: 'List domains of workspaces.',
      query: Type.Object(
        {
          ...cursorQuery,
          workspace_id: Type.Optional(Type.String({ maxLength: 64, description: 'Only of this workspace.' })),
          domain: Type.Optional(
            Type.String({ maxLength: 255, description: 'Only the domain of this name.' }),
          ),
        },
        { additionalProperties: false },
      ),
      item: OperatedDomainSchema,
      async handle({ query, workspaceId }, page) {
        const name = query.domain === undefined ? undefined : readDomainName(query.domain)
        const found = await listDomainsOfAll(database.reader, { owner: workspaceId, name }, page)
        return { ...found, items: found.items.map(domain => operatedToApi(domain, domains)) }
      },
    }),
    adminRoute({
      method: 'POST',
      path: '/domains',
      access: access('domains:write'),
      operationId: 'addDomainToWorkspace',
      chapter: 'Domains',
      summary: 'Add a domain to a workspace.',
      description:
        "Vouching for a domain, and adding the appliance's own names (host, return path, shared sending address), require a role in all workspaces.",
      body: Type.Object(
        {
          ...NewDomainBody.properties,
          workspace_id: Type.String({ minLength: 1, maxLength: 64 }),
          vouch: Type.Optional(
            Type.Boolean({
              default: false,
              description: 'Mark it verified without DNS: for domains of a local network, and for trials.',
            }),
          ),
        },
        { additionalProperties: false, title: 'NewDomainOfWorkspace' },
      ),
      response: DomainDetailsSchema,
      status: 201,
      errors: ['not_found', 'duplicate'],
      async handle({ operator, body }) {
        requirePermission(operator, 'domains:write', body.workspace_id)
        if (body.vouch) requirePermission(operator, 'domains:write', ALL_WORKSPACES)
        if (!(await hasWorkspace(database.reader, body.workspace_id)))
          throw new AppError('not_found', `no workspace ${body.workspace_id}`, { path: 'workspace_id' })
        const proof = body.vouch ? 'vouched' : 'dns'
        const mayTakeOwnNames = mayOperate(operator, 'domains:write', ALL_WORKSPACES)
        const { workspace_id: owner, domain } = body
        return detailsToApi(
          await addDomain(domains, owner, domain, operator.actor, proof, mayTakeOwnNames),
          parts,
        )
      },
    }),
    adminRoute({
      method: 'GET',
      path: '/domains/:id',
      access: access('domains:read'),
      operationId: 'getDomainDetails',
      chapter: 'Domains',
      summary: 'Get a domain of any workspace.',
      params: DomainParams,
      response: DomainDetailsSchema,
      errors: ['not_found'],
      handle: async ({ operator, params }) =>
        detailsToApi(await load(operator, 'domains:read', params.id), parts),
    }),
    adminRoute({
      method: 'POST',
      path: '/domains/:id/verify',
      access: access('domains:write'),
      operationId: 'checkDomain',
      chapter: 'Domains',
      summary: "Check a domain's DNS records now.",
      description:
        'A verified domain with wrong records keeps its verification for 3 days, as in automatic checks.',
      params: DomainParams,
      response: DomainDetailsSchema,
      errors: ['not_found'],
      async handle({ operator, params }) {
        const { owner, id } = await load(operator, 'domains:write', params.id)
        return detailsToApi(await verifyDomain(domains, owner, id, operator.actor), parts)
      },
    }),
    adminRoute({
      method: 'POST',
      path: '/domains/:id/vouch',
      access: { ...access('domains:write'), isSensitive: true },
      operationId: 'vouchForDomain',
      chapter: 'Domains',
      summary: 'Mark a domain verified without DNS.',
      description:
        'For domains of a local network, and for trials. Its records are not checked any more; mail from it is sent as from a verified ' +
        'domain. Requires a role in all workspaces. To return to verification by DNS, remove the domain and add it again.',
      params: DomainParams,
      response: DomainDetailsSchema,
      errors: ['not_found', 'conflict'],
      async handle({ operator, params }) {
        const { owner, id } = await load(operator, 'domains:write', params.id)
        requirePermission(operator, 'domains:write', ALL_WORKSPACES)
        return detailsToApi(await vouchForDomain(domains, owner, id, operator.actor), parts)
      },
    }),
    adminRoute({
      method: 'POST',
      path: '/domains/:id/rotate-dkim',
      access: access('domains:write'),
      operationId: 'rotateKeysOfDomain',
      chapter: 'Domains',
      summary: "Rotate any domain's DKIM keys.",
      params: DomainParams,
      body: Type.Object(
        {
          force: Type.Optional(
            Type.Boolean({
              default: false,
              description: 'Do not check first that the standby keys are in DNS.',
            }),
          ),
        },
        { additionalProperties: false, title: 'KeyRotation' },
      ),
      isBodyOptional: true,
      response: DomainDetailsSchema,
      errors: ['not_found', 'conflict'],
      async handle({ operator, params, body }) {
        const { owner, id } = await load(operator, 'domains:write', params.id)
        return detailsToApi(await rotateDomain(domains, owner, id, operator.actor, body.force), parts)
      },
    }),
    adminRoute({
      method: 'DELETE',
      path: '/domains/:id',
      access: access('domains:write'),
      operationId: 'removeDomainFromWorkspace',
      chapter: 'Domains',
      summary: 'Remove a domain of any workspace.',
      description: 'Mail already accepted is still signed and sent.',
      params: DomainParams,
      response: Done,
      errors: ['not_found'],
      async handle({ operator, params }) {
        const { owner, id } = await load(operator, 'domains:write', params.id)
        await deleteDomain(domains, owner, id, operator.actor)
        return DONE
      },
    }),
    adminRoute({
      method: 'GET',
      path: '/dns-zone',
      access: { permission: 'domains:read', scope: 'appliance' },
      operationId: 'getDkimZone',
      chapter: 'Domains',
      summary: 'List the records of the DKIM zone.',
      response: ZoneSchema,
      async handle() {
        const records = await zoneRecords(database.reader, dkimZone, clock.now())
        return {
          ...zoneToApi(parts),
          records: records.map(({ name, type, ttl, value }) => ({ name, type, ttl, value })),
        }
      },
    }),
    adminDownloadRoute({
      method: 'GET',
      path: '/dns-zone/file',
      access: { permission: 'domains:read', scope: 'appliance' },
      operationId: 'downloadDkimZone',
      chapter: 'Domains',
      summary: 'Download the DKIM zone file.',
      query: Type.Object(
        {
          whole: Type.Optional(
            Type.Boolean({
              default: false,
              description:
                'With SOA and NS records; otherwise lines to include below those of another name server.',
            }),
          ),
        },
        { additionalProperties: false },
      ),
      mediaType: 'text/dns',
      exampleAnswer: `$ORIGIN dkim.example.com.\npr1a2b3c1.dkim.example.com. ${TTL_SECONDS} IN TXT ( "v=DKIM1; k=rsa; p=..." ) ; shop.example`,
      async handle({ query }) {
        const now = clock.now()
        const records = await zoneRecords(database.reader, dkimZone, now)
        const text = query.whole
          ? wholeZoneFile(records, dkimZone, hostname, Math.floor(now / 1_000))
          : zoneFile(records, dkimZone)
        return {
          fileName: `${dkimZone}.zone`,
          pieces: async function* () {
            yield `${text}\n`
          },
        }
      },
    }),
  ]
}

function operatedToApi(domain: Domain, parts: DomainParts): OperatedDomain {
  return { ...domainToApi(domain, parts), workspace_id: domain.owner }
}

function detailsToApi(domain: Domain, parts: DomainAdminParts): DomainDetails {
  const { dkimZone, reportAddress } = parts.domains
  const permission = reportPermission(domain, reportAddress)
  return {
    ...operatedToApi(domain, parts.domains),
    dkim_zone: zoneToApi(parts),
    report_address: reportAddress,
    report_permission: permission === undefined ? null : zoneLine(permission, TTL_SECONDS),
    zone_file: domainZone(domain.domain, dnsRecords(domain, dkimZone, reportAddress)),
  }
}

function zoneToApi({ domains, hostname, servesDkimZone }: DomainAdminParts): Static<typeof DkimZoneSchema> {
  return {
    name: domains.dkimZone,
    served_here: servesDkimZone,
    delegation: delegationLine(domains.dkimZone, hostname),
  }
}
