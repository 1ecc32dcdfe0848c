/** The workspace of an automation. In a removed workspace nothing runs; everything resumes when it is restored. */
import type { ActingWorkspace } from '../accounts/workspace-store.js'
import { AppError } from '../core/errors.js'
import type { AutomationParts } from './automation-parts.js'

export async function findLiveWorkspace(
  { send }: Pick<AutomationParts, 'send'>,
  id: string,
): Promise<ActingWorkspace | undefined> {
  try {
    return await send.senders.workspace(id)
  } catch (error) {
    if (error instanceof AppError && error.code === 'workspace_not_found') return undefined
    throw error
  }
}
