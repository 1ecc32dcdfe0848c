/** Findings about a campaign's sender and workspace, as receivers will judge them. */
import type { ActingWorkspace } from '../../accounts/workspace-store.js'
import type { Queries } from '../../db/database.js'
import { findDomain } from '../../deliverability/domains/domain-store.js'
import type { Author, Sender } from '../../msa/sender.js'
import { finding, type CampaignFinding } from './findings.js'

export async function senderFindings(
  db: Queries,
  workspace: ActingWorkspace,
  { from, signingDomainId }: Sender,
  author: Author,
): Promise<CampaignFinding[]> {
  const findings: CampaignFinding[] = []
  if (from.address !== author.fromAddress)
    findings.push(
      finding(
        'sender_replaced',
        `The mail is sent from ${from.address}, since the domain of the sender is not set up here`,
        author.fromAddress,
      ),
    )
  if ((workspace.companyAddress ?? '').trim() === '')
    findings.push(
      finding(
        'postal_address_missing',
        'The workspace has no postal address, which laws such as CAN-SPAM require',
      ),
    )
  const domain =
    signingDomainId === null ? undefined : await findDomain(db, workspace.liveId, signingDomainId)
  for (const [name, { status }] of Object.entries(domain?.isVouched === true ? {} : (domain?.findings ?? {})))
    if (status === 'failed')
      findings.push(
        finding(
          'dns_record_wrong',
          'The record in DNS is missing or wrong, so receivers may distrust the mail',
          name,
        ),
      )
  return findings
}
