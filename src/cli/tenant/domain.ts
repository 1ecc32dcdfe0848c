/** `postroad domain add|list|show|verify|vouch|rotate|remove`, and `postroad dns zone`: the contents of `dns.dkim_zone`. */
import type { Command } from 'commander'
import { AppError } from '../../core/errors.js'
import { isAppliance } from '../../core/owner.js'
import type {
  DkimZoneRecords,
  DomainDetails,
  OperatedDomain,
} from '../../deliverability/domains/domain-admin-routes.js'
import { TTL_SECONDS, zoneLine } from '../../deliverability/domains/dns-records.js'
import { textOf, withApi, type Api } from '../api.js'
import { type CliContext, type CommonOptions, type OwnedOptions, printResult, table } from '../context.js'
import { apiCommand, owned } from '../options.js'

interface ShownOptions extends OwnedOptions {
  readonly zone?: boolean
}

const ZONE_OPTION = 'print the records in zone file syntax'
/** More than any appliance has. */
const ALL = 1_000_000

export function domainCommands(program: Command, context: CliContext): void {
  const group = program.command('domain').description('sending domains')
  const inWorkspace = (nameAndArgs: string, description: string) =>
    owned(apiCommand(group, nameAndArgs, description), 'workspace of the domain')
  inWorkspace('add <name>', 'add a domain and print the DNS records to publish')
    .option('--vouch', 'mark it verified without checking DNS (LAN domains, testing)')
    .option('--zone', ZONE_OPTION)
    .action(async (name: string, options: ShownOptions & { vouch?: boolean }) => {
      await withApi(context, options, async ({ admin }) => {
        const vouch = options.vouch ?? false
        const body = { workspace_id: options.workspace, domain: name, vouch }
        printDomain(context, options, await admin.send<DomainDetails>('POST', '/domains', body))
      })
    })
  apiCommand(group, 'list', 'list the domains of all workspaces')
    .option('--workspace <name|id>', 'only this workspace')
    .action(async (options: CommonOptions & { workspace?: string }) => {
      await withApi(context, options, async ({ admin }) => {
        const all = await admin.list<OperatedDomain>('/domains', { workspace_id: options.workspace }, ALL)
        printResult(context, options, all, () =>
          table(
            ['DOMAIN', 'STATE', 'WORKSPACE', 'ID', 'DKIM KEYS'],
            all.map(domain => [
              ...[domain.domain, stateOf(domain), domain.workspace_id],
              ...[domain.id, keysOf(domain)],
            ]),
          ),
        )
      })
    })
  inWorkspace('show <name>', 'show the DNS records of a domain and the result of the last check')
    .option('--zone', ZONE_OPTION)
    .action(async (name: string, options: ShownOptions) => {
      await withApi(context, options, async api => {
        const id = await findDomainId(api, options, name)
        printDomain(context, options, await api.admin.get<DomainDetails>(`/domains/${id}`))
      })
    })
  inWorkspace('verify <name>', 'check DNS now; a verified domain keeps its 3 days of grace').action(
    async (name: string, options: OwnedOptions) => {
      await withApi(context, options, async api => {
        const id = await findDomainId(api, options, name)
        const domain = await api.admin.send<DomainDetails>('POST', `/domains/${id}/verify`)
        printDomain(context, options, domain)
        if (!domain.verified || domain.failing_since !== null) context.fail()
      })
    },
  )
  inWorkspace('vouch <name>', 'mark a domain verified without DNS (LAN domains, testing)').action(
    async (name: string, options: OwnedOptions) => {
      await withApi(context, options, async api => {
        const id = await findDomainId(api, options, name)
        printDomain(context, options, await api.admin.send<DomainDetails>('POST', `/domains/${id}/vouch`))
      })
    },
  )
  inWorkspace('rotate <name>', 'rotate DKIM: sign with the standby keys from now on')
    .option('--force', 'do not check first that the keys are published')
    .action(async (name: string, options: OwnedOptions & { force?: boolean }) => {
      await withApi(context, options, async api => {
        const id = await findDomainId(api, options, name)
        const body = { force: options.force ?? false }
        const domain = await api.admin.send<DomainDetails>('POST', `/domains/${id}/rotate-dkim`, body)
        printDomain(context, options, domain)
      })
    })
  inWorkspace('remove <name>', 'remove a domain').action(async (name: string, options: OwnedOptions) => {
    await withApi(context, options, async api => {
      await api.admin.send('DELETE', `/domains/${await findDomainId(api, options, name)}`)
      printResult(context, options, { success: true }, () => 'removed')
    })
  })
}

async function findDomainId({ admin }: Api, { workspace }: OwnedOptions, name: string): Promise<string> {
  const query = { workspace_id: workspace, domain: name }
  const [domain] = await admin.list<OperatedDomain>('/domains', query, 1)
  if (!domain) throw new AppError('not_found', `workspace ${workspace} has no domain ${name}`)
  return domain.id
}

function printDomain(
  context: CliContext,
  options: CommonOptions & { readonly zone?: boolean },
  domain: DomainDetails,
): void {
  printResult(context, options, domain, () => (options.zone ? zoneText(domain) : domainText(domain)))
}

function domainText(domain: DomainDetails): string {
  const { dns_records: records } = domain
  return [
    `${domain.domain}  ${stateOf(domain)}  ${domain.id}`,
    ...(domain.checked_at === null ? [] : [`checked ${domain.checked_at}`]),
    '',
    table(
      ['STATUS', 'PURPOSE', 'KEY', 'TYPE', 'NAME', 'VALUE'],
      records.map(record => [
        record.status,
        record.required ? record.purpose : `${record.purpose} (optional)`,
        record.key_state ? `${record.algorithm ?? ''} ${record.key_state}` : null,
        record.type,
        record.name,
        record.value,
      ]),
    ),
    ...(domain.checked_at === null ? [] : answerLines(records)),
    ...records.flatMap(({ alternative }) =>
      alternative
        ? ['', 'instead of that CNAME, in zone file syntax:', zoneLine(alternative, TTL_SECONDS)]
        : [],
    ),
    '',
    ...zoneLines(domain),
    ...permissionLines(domain),
  ].join('\n')
}

/** Records that belong in other zones are comments. */
function zoneText(domain: DomainDetails): string {
  const elsewhere = [...zoneLines(domain), ...permissionLines(domain)]
  return [domain.zone_file, ...elsewhere.map(line => `; ${line}`)].join('\n')
}

/** Who serves the zone that the CNAMEs point into; the same for all domains. */
function zoneLines({ dkim_zone: zone }: DomainDetails): string[] {
  return zone.served_here
    ? [
        `The CNAMEs point into ${zone.name}, which this appliance serves. Delegate it once in the parent zone:`,
        zone.delegation,
      ]
    : [
        `The CNAMEs point into ${zone.name}, which your name server must serve: \`postroad dns zone\` prints its records`,
        '(or set dns.listen to have this appliance serve it).',
      ]
}

/** Records for the zone of the report address; empty if receivers do not require them (RFC 7489 §7.1). */
function permissionLines({
  domain,
  report_address: address,
  report_permission: permission,
}: DomainDetails): string[] {
  return permission === null
    ? []
    : [
        `DMARC reports about ${domain} go to ${address}, which is in another domain. Receivers only send them if this is published there, once:`,
        permission,
      ]
}

/** DNS answers for records that are wrong. */
function answerLines(records: DomainDetails['dns_records']): string[] {
  return records
    .filter(({ status }) => status !== 'verified')
    .flatMap(({ name, type, found, required }) => [
      '',
      `${name} ${type}${required ? '' : ' (optional)'}: ${found.length === 0 ? 'not found in DNS' : 'DNS has'}`,
      ...found.map(one => `  ${one}`),
    ])
}

/** E.g. `pr0a1b2c3d4e1 active, pr0a1b2c3d4e2 standby`. */
function keysOf({ dns_records: records }: OperatedDomain): string {
  return records
    .flatMap(({ name, key_state: state }) => (state ? [`${name.split('.')[0] ?? ''} ${state}`] : []))
    .join(', ')
}

function stateOf(domain: OperatedDomain): string {
  if (isAppliance(domain.workspace_id)) return 'shared address'
  if (domain.vouched) return 'vouched'
  if (!domain.verified) return 'not verified'
  return domain.failing_since === null ? 'verified' : `verified, records wrong since ${domain.failing_since}`
}

export function dnsCommands(program: Command, context: CliContext): void {
  const group = program.command('dns').description('DNS records of this appliance')
  apiCommand(group, 'zone', 'print the TXT records of all DKIM keys in zone file syntax')
    .option('--whole', 'print a complete zone file, with SOA and NS')
    .action(async (options: CommonOptions & { whole?: boolean }) => {
      await withApi(context, options, async ({ admin }) => {
        const zone = await admin.get<DkimZoneRecords>('/dns-zone')
        if (options.json) {
          printResult(context, options, zone.records, () => '')
          return
        }
        const file = await textOf(await admin.download('/dns-zone/file', { whole: options.whole ?? false }))
        context.print([...servedHere(zone), file.trimEnd()].join('\n'))
      })
    })
}

/** As comments of a zone file. */
function servedHere({ name, served_here: isServed, delegation }: DkimZoneRecords): string[] {
  if (!isServed) return []
  return [
    `; This appliance is the name server of ${name} (dns.listen). Delegate it in the parent zone:`,
    `;   ${delegation}`,
  ]
}
