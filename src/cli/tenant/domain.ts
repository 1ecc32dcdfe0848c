/** `postroad domain add|list|show|verify|rotate|remove`, and `postroad dns zone`: the contents of `dns.dkim_zone`. */
import type { Command } from 'commander'
import type { Appliance } from '../../appliance/appliance.js'
import type { Config } from '../../config/config.js'
import { AppError } from '../../core/errors.js'
import { isoTime } from '../../core/moments.js'
import { isAppliance } from '../../core/owner.js'
import { delegationLine, wholeZoneFile, zoneFile, zoneRecords } from '../../deliverability/dkim/dkim-zone.js'
import { rotateDomain } from '../../deliverability/dkim/rotate-dkim.js'
import {
  dnsRecords,
  domainZone,
  reportPermission,
  TTL_SECONDS,
  zoneLine,
} from '../../deliverability/domains/dns-records.js'
import { domainToApi } from '../../deliverability/domains/domain-routes.js'
import { type Domain, findDomainByName, listAllDomains } from '../../deliverability/domains/domain-store.js'
import {
  addDomain,
  deleteDomain,
  readDomainName,
  verifyDomain,
} from '../../deliverability/domains/domains.js'
import {
  type CliContext,
  type CommonOptions,
  getWorkspace,
  type OwnedOptions,
  printResult,
  table,
  withAppliance,
} from '../context.js'
import { ownedGroup, command } from '../options.js'

interface ShownOptions extends OwnedOptions {
  readonly zone?: boolean
}

const ZONE_OPTION = 'print the records in zone file syntax'

export function domainCommands(program: Command, context: CliContext): void {
  const { group, inWorkspace } = ownedGroup(program, 'domain', 'sending domains')
  inWorkspace('add <name>', 'add a domain and print the DNS records to publish')
    .option('--vouch', 'mark it verified without checking DNS (LAN domains, testing)')
    .option('--zone', ZONE_OPTION)
    .action(async (name: string, options: ShownOptions & { vouch?: boolean }) => {
      await withAppliance(context, options, async appliance => {
        const { database, domains } = appliance
        await getWorkspace(database.reader, options.workspace)
        const domain = await addDomain(domains, options.workspace, name, options.vouch ? 'vouched' : 'dns')
        printDomain(context, options, domain, appliance)
      })
    })
  command(group, 'list', 'list the domains of all workspaces').action(async (options: CommonOptions) => {
    await withAppliance(context, options, async ({ database, domains }) => {
      const all = await listAllDomains(database.reader)
      const json = all.map(domain => ({
        ...domainToApi(domain, domains),
        workspace_id: domain.owner,
      }))
      printResult(context, options, json, () =>
        table(
          ['DOMAIN', 'STATE', 'WORKSPACE', 'ID', 'DKIM KEYS'],
          all.map(domain => [domain.domain, stateOf(domain), domain.owner, domain.id, keysOf(domain)]),
        ),
      )
    })
  })
  inWorkspace('show <name>', 'show the DNS records of a domain and the result of the last check')
    .option('--zone', ZONE_OPTION)
    .action(async (name: string, options: ShownOptions) => {
      await withAppliance(context, options, async appliance => {
        const domain = await getDomain(appliance, options, name)
        printDomain(context, options, domain, appliance)
      })
    })
  inWorkspace('verify <name>', 'check DNS now; a verified domain keeps its 3 days of grace').action(
    async (name: string, options: OwnedOptions) => {
      await withAppliance(context, options, async appliance => {
        const { id } = await getDomain(appliance, options, name)
        const domain = await verifyDomain(appliance.domains, options.workspace, id)
        printDomain(context, options, domain, appliance)
        if (domain.verifiedAt === null || domain.failingSince !== null) context.fail()
      })
    },
  )
  inWorkspace('rotate <name>', 'rotate DKIM: sign with the standby keys from now on')
    .option('--force', 'do not check first that the keys are published')
    .action(async (name: string, options: OwnedOptions & { force?: boolean }) => {
      await withAppliance(context, options, async appliance => {
        const { id } = await getDomain(appliance, options, name)
        const domain = await rotateDomain(appliance.domains, options.workspace, id, options.force ?? false)
        printDomain(context, options, domain, appliance)
      })
    })
  inWorkspace('remove <name>', 'remove a domain').action(async (name: string, options: OwnedOptions) => {
    await withAppliance(context, options, async appliance => {
      await deleteDomain(appliance.domains, options.workspace, (await getDomain(appliance, options, name)).id)
      printResult(context, options, { success: true }, () => 'removed')
    })
  })
}

async function getDomain({ database }: Appliance, options: OwnedOptions, name: string): Promise<Domain> {
  const domain = await findDomainByName(database.reader, options.workspace, readDomainName(name))
  if (!domain) throw new AppError('not_found', `workspace ${options.workspace} has no domain ${name}`)
  return domain
}

type Shown = Pick<Appliance, 'config' | 'domains'>

function printDomain(
  context: CliContext,
  options: CommonOptions & { readonly zone?: boolean },
  domain: Domain,
  appliance: Shown,
): void {
  printResult(context, options, domainToApi(domain, appliance.domains), () =>
    options.zone ? zoneText(domain, appliance) : domainText(domain, appliance),
  )
}

function domainText(domain: Domain, { config, domains }: Shown): string {
  const { dns_records: records } = domainToApi(domain, domains)
  return [
    `${domain.domain}  ${stateOf(domain)}  ${domain.id}`,
    ...(domain.checkedAt === null ? [] : [`checked ${isoTime(domain.checkedAt)}`]),
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
    ...(domain.checkedAt === null ? [] : answerLines(records)),
    ...records.flatMap(({ alternative }) =>
      alternative
        ? ['', 'instead of that CNAME, in zone file syntax:', zoneLine(alternative, TTL_SECONDS)]
        : [],
    ),
    '',
    ...zoneLines(config),
    ...permissionLines(domain, domains),
  ].join('\n')
}

/** Records that belong in other zones are comments. */
function zoneText(domain: Domain, { config, domains }: Shown): string {
  const records = dnsRecords(domain, domains.dkimZone, domains.reportAddress)
  const elsewhere = [...zoneLines(config), ...permissionLines(domain, domains)]
  return [domainZone(domain.domain, records), ...elsewhere.map(line => `; ${line}`)].join('\n')
}

/** Who serves the zone that the CNAMEs point into; the same for all domains. */
function zoneLines({ dns, hostname }: Config): string[] {
  return dns.listen.length === 0
    ? [
        `The CNAMEs point into ${dns.dkimZone}, which your name server must serve: \`postroad dns zone\` prints its records`,
        '(or set dns.listen to have this appliance serve it).',
      ]
    : [
        `The CNAMEs point into ${dns.dkimZone}, which this appliance serves. Delegate it once in the parent zone:`,
        delegationLine(dns.dkimZone, hostname),
      ]
}

/** Records for the zone of the report address; empty if receivers do not require them (RFC 7489 §7.1). */
function permissionLines(domain: Domain, { reportAddress }: Appliance['domains']): string[] {
  const permission = reportPermission(domain, reportAddress)
  return permission === undefined
    ? []
    : [
        `DMARC reports about ${domain.domain} go to ${reportAddress}, which is in another domain. Receivers only send them if this is published there, once:`,
        zoneLine(permission, TTL_SECONDS),
      ]
}

type ShownRecord = ReturnType<typeof domainToApi>['dns_records'][number]

/** What DNS returned for records that are wrong. */
function answerLines(records: readonly ShownRecord[]): string[] {
  return records
    .filter(({ status }) => status !== 'verified')
    .flatMap(({ name, type, found, required }) => [
      '',
      `${name} ${type}${required ? '' : ' (optional)'}: ${found.length === 0 ? 'not found in DNS' : 'DNS has'}`,
      ...found.map(one => `  ${one}`),
    ])
}

/** E.g. `pr0a1b2c3d4e1 active, pr0a1b2c3d4e2 standby`. */
function keysOf({ selectors }: Domain): string {
  return selectors.map(({ name, state }) => `${name} ${state}`).join(', ')
}

function stateOf(domain: Domain): string {
  if (isAppliance(domain.owner)) return 'shared address'
  if (domain.isVouched) return 'vouched'
  if (domain.verifiedAt === null) return 'not verified'
  return domain.failingSince === null
    ? 'verified'
    : `verified, records wrong since ${isoTime(domain.failingSince)}`
}

export function dnsCommands(program: Command, context: CliContext): void {
  const group = program.command('dns').description('DNS records of this appliance')
  command(group, 'zone', 'print the TXT records of all DKIM keys in zone file syntax')
    .option('--whole', 'print a complete zone file, with SOA and NS')
    .action(async (options: CommonOptions & { whole?: boolean }) => {
      await withAppliance(context, options, async ({ database, config, world }) => {
        const { dns, hostname } = config
        const now = world.clock.now()
        const records = await zoneRecords(database.reader, dns.dkimZone, now)
        const json = records.map(({ name, type, ttl, value }) => ({ name, type, ttl, value }))
        const text = () =>
          options.whole
            ? wholeZoneFile(records, dns.dkimZone, hostname, Math.floor(now / 1_000))
            : zoneFile(records, dns.dkimZone)
        printResult(context, options, json, () => [...servedHere(config), text()].join('\n'))
      })
    })
}

/** As comments of a zone file. */
function servedHere({ dns, hostname }: Config): string[] {
  if (dns.listen.length === 0) return []
  return [
    `; This appliance is the name server of ${dns.dkimZone} (dns.listen). Delegate it in the parent zone:`,
    `;   ${delegationLine(dns.dkimZone, hostname)}`,
  ]
}
