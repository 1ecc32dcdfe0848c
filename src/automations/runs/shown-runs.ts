/** A page of runs as the API and the command line show it. Fails: as the database does. */
import type { Static } from 'typebox'
import type { Queries } from '../../db/database.js'
import type { Listing, Page } from '../../http/pagination.js'
import type { Automation } from '../flows/automation.js'
import { findStepIds } from '../flows/step-store.js'
import type { KeptStatus, RunStatus } from './run.js'
import { runToApi, type RunSchema } from './run-schema.js'
import { listRuns } from './run-store.js'

export async function shownRuns(
  db: Queries,
  automation: Automation,
  status: RunStatus | undefined,
  page: Page,
): Promise<Listing<Static<typeof RunSchema>>> {
  const kept = keptStatus(automation, status)
  if (kept === 'none') return { items: [], total: 0 }
  const found = await listRuns(db, automation.seq, kept, countOf(automation, kept), page)
  const steps = new Set(found.items.flatMap(({ step }) => (step === null ? [] : [step])))
  const ids = await findStepIds(db, [...steps])
  return { ...found, items: found.items.map(run => runToApi(run, automation, ids)) }
}

/** Runs stand still while their automation does: then none is active, and otherwise none is paused. */
function keptStatus(automation: Automation, status: RunStatus | undefined): KeptStatus | undefined | 'none' {
  const isPaused = automation.status === 'paused'
  if (status === 'paused') return isPaused ? 'active' : 'none'
  return status === 'active' && isPaused ? 'none' : status
}

function countOf({ runs }: Automation, status: KeptStatus | undefined): number {
  return status === undefined ? runs.active + runs.completed + runs.failed + runs.cancelled : runs[status]
}
