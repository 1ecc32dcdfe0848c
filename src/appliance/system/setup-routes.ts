/**
 * The setup checklist in the admin API: what a workspace needs before its first campaign reaches somebody, and how far it is.
 *
 * Each step is found done in what is stored, never ticked by hand. The step `delivery` shows the last examination of the doctor, and only
 * operators of the appliance see it, who can do something about it.
 */
import Type, { type Static } from 'typebox'
import type { Config } from '../../config/config.js'
import { AppError } from '../../core/errors.js'
import { isoTimeOrNull } from '../../core/moments.js'
import type { Services } from '../../db/services.js'
import { adminRoute } from '../../http/admin-route.js'
import { MomentOrNull, TextOrNull } from '../../http/answer/answer-fields.js'
import { codeSample, LANGUAGES, type Language } from '../../http/openapi/code-samples.js'
import { mayOperate, type OperatorPrincipal } from '../../http/operator.js'
import { ALL_WORKSPACES } from '../../http/roles.js'
import type { Route } from '../../http/route.js'
import type { DoctorRuns } from './doctor-routes.js'
import { readSetup, setSetupDismissed, type SetupFacts } from './setup-store.js'

export interface SetupParts extends Pick<Services, 'database' | 'clock'> {
  readonly config: () => Config
}

const STEPS = ['company', 'sender', 'delivery', 'mail', 'contacts', 'campaign'] as const
/** What other hosts look at before they accept anything from this one. */
const DELIVERY_CHECKS = ['dns.hostname', 'dns.ptr', 'dns.spf', 'dns.return_path', 'port 25 out']

const StepSchema = Type.Object({
  name: Type.Enum([...STEPS], {
    description:
      '`company`: name and postal address, which the footer of marketing mail shows. `sender`: a verified domain. `delivery`: names, reverse ' +
      'DNS and port 25 of this server, as the doctor found them; only for operators of the appliance, and not while mail is captured. ' +
      '`mail`: a first message. `contacts`, `campaign`: a first contact, a first campaign sent. More steps may be added.',
  }),
  done: Type.Boolean(),
  record_id: TextOrNull({
    description:
      'Where it goes on: the newest domain that is not verified (`sender`), the newest message (`mail`), the newest draft, or the newest ' +
      'campaign if one was sent (`campaign`).',
  }),
  detail: TextOrNull({
    description: 'The verified domain, or the status of that message.',
  }),
  problems: Type.Array(Type.String(), {
    description: 'Of `delivery`: names of the checks that did not pass. `GET /doctor/latest` explains them.',
  }),
})

const SetupSchema = Type.Object(
  {
    dismissed_at: MomentOrNull({ description: 'When the checklist was dismissed; null if it is shown.' }),
    steps: Type.Array(StepSchema, { description: 'In the order in which they are best done.' }),
    first_email: Type.Array(
      Type.Object({
        language: Type.String({ description: 'E.g. `python`.' }),
        title: Type.String(),
        code: Type.String(),
      }),
      {
        description:
          'A request that sends a first email, as programs. They read the API key from `POSTROAD_KEY`.',
      },
    ),
  },
  { title: 'Setup' },
)
type Setup = Static<typeof SetupSchema>
type Step = Static<typeof StepSchema>

const EXAMPLE: Setup = {
  dismissed_at: null,
  steps: [
    step('company', true),
    step('sender', true, { detail: 'shop.example' }),
    step('delivery', false, { problems: ['dns.ptr'] }),
    step('mail', false),
    step('contacts', false),
    step('campaign', false),
  ],
  first_email: firstEmail('https://mail.example.net', 'shop.example', 'ann@example.com').slice(0, 1),
}

const Params = Type.Object({ workspaceId: Type.String({ maxLength: 64 }) })

export function setupRoutes(doctor: DoctorRuns, { database, clock, config }: SetupParts): Route[] {
  const answer = async (operator: OperatorPrincipal, workspaceId: string): Promise<Setup> => {
    const facts = await readSetup(database.reader, workspaceId)
    if (!facts) throw new AppError('not_found', `no workspace ${workspaceId}`)
    const { mta, publicUrl } = config()
    const seesDelivery = !mta.capture && mayOperate(operator, 'system:read', ALL_WORKSPACES)
    return {
      dismissed_at: isoTimeOrNull(facts.dismissedAt),
      steps: stepsOf(facts, seesDelivery ? [deliveryStep(doctor)] : []),
      first_email: firstEmail(
        publicUrl,
        facts.verifiedDomain,
        mta.capture ? 'ann@example.com' : operator.email,
      ),
    }
  }
  return [
    adminRoute({
      method: 'GET',
      path: '/workspaces/:workspaceId/setup',
      access: { permission: 'workspace:read', scope: 'path' },
      operationId: 'getSetup',
      chapter: 'Workspaces',
      summary: 'Get the setup checklist of a workspace.',
      description:
        'If the doctor has not examined the appliance since it started, an examination is started.',
      params: Params,
      response: SetupSchema,
      exampleAnswer: EXAMPLE,
      handle: async ({ operator, params }) => answer(operator, params.workspaceId),
    }),
    adminRoute({
      method: 'PATCH',
      path: '/workspaces/:workspaceId/setup',
      access: { permission: 'workspace:write', scope: 'path' },
      operationId: 'updateSetup',
      chapter: 'Workspaces',
      summary: 'Dismiss the setup checklist of a workspace, or show it again.',
      params: Params,
      body: Type.Object(
        { dismissed: Type.Boolean() },
        { additionalProperties: false, title: 'SetupChanges' },
      ),
      example: { dismissed: true },
      response: SetupSchema,
      exampleAnswer: EXAMPLE,
      async handle({ operator, params, body }) {
        await database.write(tx =>
          setSetupDismissed(tx.db, params.workspaceId, body.dismissed ? clock.now() : null),
        )
        return answer(operator, params.workspaceId)
      },
    }),
  ]
}

function firstEmail(publicUrl: string, domain: string | null, to: string): Setup['first_email'] {
  const call = {
    method: 'POST',
    url: `${publicUrl.replace(/\/$/, '')}/api/v1/email/send`,
    token: 'POSTROAD_KEY',
    headers: [],
    body: {
      json: {
        to,
        from_email: `hello@${domain ?? 'example.com'}`,
        subject: 'It works',
        html: '<h1>Hello</h1><p>The first email from this server.</p>',
      },
    },
  }
  return (Object.keys(LANGUAGES) as Language[]).map(language => ({
    language,
    title: LANGUAGES[language],
    code: codeSample(language, call),
  }))
}

function stepsOf(facts: SetupFacts, delivery: readonly Step[]): Step[] {
  return [
    step('company', hasText(facts.companyName) && hasText(facts.companyAddress)),
    step('sender', facts.verifiedDomain !== null, {
      record_id: facts.pendingDomainId,
      detail: facts.verifiedDomain,
    }),
    ...delivery,
    step('mail', facts.messageId !== null, { record_id: facts.messageId, detail: facts.messageStatus }),
    step('contacts', facts.contacts > 0),
    step('campaign', facts.sentCampaignId !== null, {
      record_id: facts.sentCampaignId ?? facts.draftCampaignId,
    }),
  ]
}

function deliveryStep(doctor: DoctorRuns): Step {
  const { endedAt, checks } = doctor.latest() ?? doctor.start()
  const asked = checks.filter(({ name }) => DELIVERY_CHECKS.includes(name))
  const problems = asked.filter(({ status }) => status !== 'ok').map(({ name }) => name)
  return step('delivery', endedAt !== null && problems.length === 0, { problems })
}

function step(
  name: Step['name'],
  done: boolean,
  rest: Partial<Pick<Step, 'record_id' | 'detail' | 'problems'>> = {},
): Step {
  return { name, done, record_id: null, detail: null, problems: [], ...rest }
}

function hasText(text: string | null): boolean {
  return text !== null && text.trim() !== ''
}
