/**
 * The only module that reads the process environment.
 *
 * The command line passes it to `loadConfig`; everything else gets a `Config`.
 */

export type Environment = Readonly<Record<string, string | undefined>>

export const environment: Environment = process.env

/** @returns the configuration file: from the command line, else $POSTROAD_CONFIG, else the packaged default */
export function chooseConfigFile(given: string | undefined, env: Environment): string {
  // Treat an empty variable as unset, as unit files leave it.
  return given ?? (env['POSTROAD_CONFIG'] || '/etc/postroad/postroad.toml')
}
