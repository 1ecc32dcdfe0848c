/**
 * A group of commands on what a workspace has: each of them names the workspace, and lists have `--limit`, a table and `--json`.
 *
 * Called by the files of such groups (`lists`, `tags`, `campaign` ...), which say what is shown. Fails: as commands do.
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

/** Rows of a list where nothing is said. */
const USUAL_ROWS = 100

export interface OwnedGroup {
  readonly group: Command
  /** @param nameAndArgs as `command` takes it */
  readonly inWorkspace: (nameAndArgs: string, description: string) => Command
}

/** One row of a list: in the REST form, and as cells under the head. */
export interface ListedRow {
  readonly shown: object
  readonly cells: readonly (string | number | null)[]
}

/** What a list is asked for; `named` is the first argument of a command that has one. */
export interface ListRequest<Options> {
  readonly workspaceId: string
  readonly page: Page
  readonly options: Options
  readonly named: string
}

/** @param whose as help shows it beside `--workspace` */
export function ownedGroup(
  program: Command,
  name: string,
  description: string,
  whose = `whose ${name}`,
): OwnedGroup {
  const group = program.command(name).description(description)
  return {
    group,
    inWorkspace: (nameAndArgs, about) => owned(command(group, nameAndArgs, about), whose),
  }
}

/**
 * Makes a command one that prints a list.
 *
 * @param one with whatever options it has of its own @param read what there is to be printed, once the workspace is known to exist
 */
export function printsList<Options = object>(
  context: CliContext,
  one: Command,
  head: readonly string[],
  read: (appliance: Appliance, request: ListRequest<Options>) => Promise<readonly ListedRow[]>,
): void {
  limited(one, USUAL_ROWS).action(async (...given: unknown[]) => {
    // Commander hands over the arguments, the options and the command.
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
