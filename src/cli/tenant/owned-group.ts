/**
 * Command groups for resources of a workspace (`lists`, `tags`, `campaign` ...): every command takes `--workspace`, and lists have
 * `--limit`, a table and `--json`.
 */
import type { Command } from 'commander'
import type { Appliance } from '../../appliance/appliance.js'
import type { Page } from '../../http/pagination.js'
import {
  command,
  limited,
  mustFindWorkspace,
  owned,
  printResult,
  table,
  withAppliance,
  type CliContext,
  type ListOptions,
  type OwnedOptions,
} from '../context.js'

/** Default of `--limit`. */
const USUAL_ROWS = 100

export interface OwnedGroup {
  readonly group: Command
  readonly inWorkspace: (nameAndArgs: string, description: string) => Command
}

/** One row of a list, as JSON and as table cells. */
export interface ListedRow {
  readonly shown: object
  readonly cells: readonly (string | number | null)[]
}

/** `named` is the command's first argument, empty if it has none. */
export interface ListRequest<Options> {
  readonly workspaceId: string
  readonly page: Page
  readonly options: Options
  readonly named: string
}

/** @param whose help text of `--workspace` */
export function ownedGroup(
  program: Command,
  name: string,
  description: string,
  whose = `workspace of the ${name}`,
): OwnedGroup {
  const group = program.command(name).description(description)
  return {
    group,
    inWorkspace: (nameAndArgs, about) => owned(command(group, nameAndArgs, about), whose),
  }
}

/**
 * Turns a command into one that prints a list.
 *
 * @param one may have options of its own @param read called once the workspace is known to exist
 */
export function printsList<Options = object>(
  context: CliContext,
  one: Command,
  head: readonly string[],
  read: (appliance: Appliance, request: ListRequest<Options>) => Promise<readonly ListedRow[]>,
): void {
  limited(one, USUAL_ROWS).action(async (...given: unknown[]) => {
    // Commander passes the arguments, the options and the command.
    const options = given.at(-2) as OwnedOptions & ListOptions & Options
    const named = given.length > 2 ? String(given[0]) : ''
    await withAppliance(context, options, async appliance => {
      const { workspace: workspaceId, limit } = options
      await mustFindWorkspace(appliance.database.reader, workspaceId)
      const rows = await read(appliance, { workspaceId, page: { limit, offset: 0 }, options, named })
      const shown = rows.map(row => row.shown)
      printResult(context, options, shown, () =>
        table(
          head,
          rows.map(({ cells }) => cells),
        ),
      )
    })
  })
}
