/** The configuration in effect, in the admin API: read only, without secrets. */
import Type, { type Static } from 'typebox'
import type { Config } from '../../config/config.js'
import { showConfig } from '../../config/generate.js'
import type { Settings } from '../../config/settings.js'
import { AppError } from '../../core/errors.js'
import { given } from '../../core/given.js'
import { adminRoute } from '../../http/admin-route.js'
import { TextOrNull } from '../../http/answer/answer-fields.js'
import type { Route } from '../../http/route.js'
import type { Machine } from '../../world/machine.js'
import type { Clock } from '../../world/time/clock.js'
import { findConfigFaults } from '../doctor/config-findings.js'

export interface ConfigurationParts {
  readonly clock: Clock
  readonly machine: Machine
  /** The configuration in effect. */
  readonly config: () => Config
  /** Undefined for a server that was not started by `serve`. */
  readonly settings: Settings | undefined
}

const SettingSchema = Type.Object(
  {
    key: Type.String({ description: 'Dotted, e.g. mta.retry.first.' }),
    value: Type.Unknown({ description: 'As in the file; secrets are hidden.' }),
    default: Type.Optional(Type.Unknown({ description: 'Absent for a required key.' })),
    source: Type.Enum(['file', 'environment', 'default']),
    variable: Type.String({ description: 'Environment variable that overrides the file.' }),
    applied_by: Type.Enum(['reload', 'restart'], { description: 'What a change of this key requires.' }),
    pending: Type.Boolean({
      description: 'Whether the file or environment now has another value, which awaits a reload or restart.',
    }),
    effective: Type.Boolean({ description: 'False: no effect in this version.' }),
    expected: Type.String({ description: 'What the value may be.' }),
    description: Type.String(),
  },
  { title: 'Setting' },
)

const ConfigurationSchema = Type.Object(
  {
    file: Type.String({ description: 'Path of the configuration file.' }),
    settings: Type.Array(SettingSchema),
    fault: TextOrNull({ description: 'Why the current file could not be loaded; null if it could.' }),
    findings: Type.Array(
      Type.Object({
        severity: Type.Enum(['fault', 'warning']),
        path: Type.String({ description: 'Key; empty for the file itself.' }),
        what: Type.String(),
        fix: Type.String({ description: 'How to fix it.' }),
        line: Type.Optional(Type.Integer({ description: 'Line of the file.' })),
      }),
      { description: 'Likely mistakes in the configuration in effect, as in `postroad config check`.' },
    ),
    toml: Type.String({ description: 'The configuration in effect as TOML, as in `postroad config show`.' }),
  },
  { title: 'Configuration' },
)

export type Configuration = Static<typeof ConfigurationSchema>

export function configurationRoutes(parts: ConfigurationParts): Route[] {
  return [
    adminRoute({
      method: 'GET',
      path: '/configuration',
      access: { permission: 'system:read', scope: 'appliance' },
      operationId: 'getConfiguration',
      chapter: 'System',
      summary: 'Get the configuration in effect.',
      response: ConfigurationSchema,
      errors: ['unavailable'],
      handle: async () => configurationToApi(parts),
    }),
  ]
}

/** @throws AppError unavailable */
function configurationToApi({ settings, config, clock, machine }: ConfigurationParts): Configuration {
  if (!settings) throw new AppError('unavailable', 'the configuration file is not known to this server')
  const { schema, file } = settings.request
  const { settings: all, fault } = settings.list()
  const now = clock.now()
  const findings = findConfigFaults({ config: config(), file, now, addresses: machine.addresses() })
  return {
    file,
    settings: all.map(({ isReloaded, isPending, isEffective, default: usual, ...setting }) => ({
      ...setting,
      ...given({ default: usual }),
      applied_by: isReloaded ? ('reload' as const) : ('restart' as const),
      pending: isPending,
      effective: isEffective,
    })),
    fault,
    findings: findings.map(({ severity, path, what, fix, line }) => ({
      severity,
      path,
      what,
      fix,
      ...given({ line }),
    })),
    toml: showConfig(schema, { tables: settings.tables() }),
  }
}
