/**
 * Effect and cost of each migration, for `postroad migrate --dry-run` and the log of an upgrade.
 *
 * Beside the migrations, since those are frozen. Costs are rough: measured with `test/upgrade/measure-upgrade.ts` on two busy cores, where a
 * million messages with two million webhook deliveries take four seconds in all.
 */

export interface MigrationNote {
  /** One sentence. */
  readonly does: string
  /** Tables whose rows it reads or changes. A column that is added touches no row. */
  readonly touches: readonly TouchedTable[]
}

export interface TouchedTable {
  readonly table: string
  /** SQL condition of the rows; all if absent. */
  readonly where?: string
  /** For each row. */
  readonly microseconds: number
  /** For each row: what the database file and its log grow by. */
  readonly octets: number
}

export const MIGRATION_NOTES: Readonly<Record<string, MigrationNote>> = {
  '0001-baseline': { does: 'Creates the schema of the first release.', touches: [] },
  '0002-proved-accounts': {
    does: 'Adds proof of the addresses of operators and invitations that their holder accepts; ends invitations and resets mailed before.',
    touches: [
      {
        table: 'operator_links',
        where: "kind in ('invitation', 'reset')",
        microseconds: 20,
        octets: 200,
      },
    ],
  },
  '0003-authenticated-reports': {
    does: 'Adds to DMARC and TLS reports the domain that SPF authenticated, with an index.',
    touches: [{ table: 'domain_reports', microseconds: 2, octets: 60 }],
  },
  '0004-pending-payloads': {
    does: 'Indexes webhook deliveries that are still tried, by their payload.',
    touches: [{ table: 'webhook_deliveries', microseconds: 1.5, octets: 50 }],
  },
  '0005-kept-etags': { does: 'Adds the ETag to answers that are stored for repeats.', touches: [] },
  '0006-quarter-counters': {
    does: 'Adds counters by quarter hour, for reports by days of any time zone.',
    touches: [],
  },
  '0007-last-sent': {
    does: 'Adds to feeds the date of the newest item sent, and to webhook attempts their User-Agent; feeds are read in full once more.',
    touches: [
      { table: 'feeds', microseconds: 100, octets: 500 },
      { table: 'feed_runs', where: "status = 'sent'", microseconds: 2, octets: 0 },
    ],
  },
  '0008-attributes': { does: 'Adds declared attributes of contacts.', touches: [] },
  '0009-campaign-waits': {
    does: 'Adds to campaigns since when they wait, with an index of those under way.',
    touches: [{ table: 'campaigns', microseconds: 2, octets: 20 }],
  },
  '0010-published-names': { does: 'Adds the names that nodes have published.', touches: [] },
  '0011-setup-dismissed': {
    does: 'Adds to workspaces whether their setup checklist was dismissed.',
    touches: [],
  },
  '0012-preheaders': { does: 'Adds preheaders to campaigns and feeds.', touches: [] },
  '0013-campaign-audiences': {
    does: 'Adds audiences of several lists and segments to campaigns.',
    touches: [],
  },
}
