import SluiceCore

/// The parts that change a replica's file, over one database. Each call of a part runs in the caller's transaction.
package struct ReplicaParts: Sendable {
    let database: ReplicaDatabase
    package let local: LocalChanges
    package let server: ServerState
    package let subscriptions: SubscriptionStore
    package let ingest: IngestQueue

    init(_ database: ReplicaDatabase, isSynced: Bool, options: ReplicaOptions, environment: any Environment) {
        self.database = database
        let reports = CompensationReports(database: database)
        subscriptions = SubscriptionStore(database: database)
        ingest = IngestQueue(database: database, reports: reports)
        local = LocalChanges(
            database, reports, isSynced: isSynced, uploadBound: options.uploadBound, environment: environment)
        server = ServerState(database, local, subscriptions, ingest, owner: options.owner)
    }
}
