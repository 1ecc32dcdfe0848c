/** What a trigger lacks before its automation can be active. Fails: as the database does. */
import { findActingWorkspace } from '../../accounts/workspace-store.js'
import { findForm } from '../../audience/forms/form-store.js'
import { findList } from '../../audience/lists/list-store.js'
import { findSegment } from '../../audience/segments/segment-store.js'
import { AppError } from '../../core/errors.js'
import { isUuid } from '../../core/ids.js'
import type { Queries } from '../../db/database.js'
import { findAskedTemplate } from '../../msa/merged-content.js'
import type { FlowParts } from '../automation-parts.js'
import type { Automation } from './automation.js'

/** @returns completes "the trigger ..."; undefined where nothing is missing */
export async function findTriggerFault(
  parts: Pick<FlowParts, 'hasCampaign'>,
  db: Queries,
  { workspaceId, triggerType, triggerConfig }: Automation,
): Promise<string | undefined> {
  const named = (field: string) => {
    const value = triggerConfig[field]
    return typeof value === 'string' ? value.trim() : ''
  }
  switch (triggerType) {
    case 'list_joined':
    case 'list_left': {
      const id = named('listId')
      if (id === '') return 'has no listId'
      const list = isUuid(id) ? await findList(db, workspaceId, id) : undefined
      if (!list) return 'names a list that is not there'
      return list.type === 'static'
        ? undefined
        : 'names a dynamic list, which nobody joins: make a segment of its conditions'
    }
    case 'tag_added':
    case 'tag_removed':
      return named('tagName') === '' ? 'has no tagName' : undefined
    case 'segment_entered': {
      const id = named('segmentId')
      if (id === '') return 'has no segmentId'
      return isUuid(id) && (await findSegment(db, workspaceId, id))
        ? undefined
        : 'names a segment that is not there'
    }
    case 'form_submitted': {
      const id = named('formId')
      if (id === '' || (isUuid(id) && (await findForm(db, workspaceId, id)))) return undefined
      return `names a form that is not there: ${id}`
    }
    case 'email_opened':
    case 'email_clicked': {
      const [campaign, template] = [named('campaignId'), named('templateId')]
      if (campaign !== '' && !(isUuid(campaign) && (await parts.hasCampaign(db, workspaceId, campaign))))
        return `names a campaign that is not there: ${campaign}`
      if (template !== '' && !(await hasTemplate(db, workspaceId, template)))
        return `names a template that is not there: ${template}`
      return undefined
    }
    case 'date':
      return named('field') === '' ? 'has no field' : undefined
    default:
      return undefined
  }
}

/** One that mail of the workspace can be made of; a sandbox uses those of the live workspace as well. */
async function hasTemplate(db: Queries, workspaceId: string, id: string): Promise<boolean> {
  const workspace = await findActingWorkspace(db, workspaceId)
  if (!workspace) return false
  try {
    return (await findAskedTemplate(db, workspace, id)) !== undefined
  } catch (error) {
    if (error instanceof AppError && error.code === 'template_not_found') return false
    throw error
  }
}
