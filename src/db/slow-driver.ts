/** Kysely driver for slow reads: nothing to set up, and its transactions are snapshots. */
import type { DatabaseConnection, Driver } from 'kysely'

export interface SnapshotConnection extends DatabaseConnection {
  beginSnapshot(): Promise<void>
  /** Does nothing if none has begun. */
  endSnapshot(): Promise<void>
}

export abstract class SlowDriver<Connection extends SnapshotConnection> implements Driver {
  abstract acquireConnection(): Promise<Connection>
  abstract destroy(): Promise<void>

  async init(): Promise<void> {
    // Connections and threads start with their first statement.
  }

  async beginTransaction(connection: Connection): Promise<void> {
    await connection.beginSnapshot()
  }

  async commitTransaction(connection: Connection): Promise<void> {
    await connection.endSnapshot()
  }

  async rollbackTransaction(connection: Connection): Promise<void> {
    await connection.endSnapshot()
  }

  async releaseConnection(connection: Connection): Promise<void> {
    // If it could not begin.
    await connection.endSnapshot()
  }
}
