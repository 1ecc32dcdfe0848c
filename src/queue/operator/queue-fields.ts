/** Fields and chapter that routes of the queue share. */
import Type from 'typebox'

export const QUEUE_CHAPTER = 'Queue'

export const domainField = Type.String({ minLength: 1, maxLength: 255, description: 'Recipient domain.' })
export const siteField = Type.String({
  minLength: 1,
  maxLength: 255,
  description: 'Site, as named by the summary by site.',
})
export const workspaceField = Type.String({
  minLength: 1,
  maxLength: 64,
  description: 'Only mail of this workspace.',
})
