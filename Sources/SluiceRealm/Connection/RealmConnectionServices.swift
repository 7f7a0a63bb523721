package import Logging
package import SluiceCore
package import SluicePorts

/// The deadlines of a connection, in milliseconds. Beyond one, the session ends with `timeout` and the client retries.
package struct RealmConnectionWaits: Hashable, Sendable {
    /// The registration of a file.
    package var allot: Int
    /// The opening of a file, and of its views.
    package var open: Int
    /// One call of the store.
    package var store: Int
    /// The next event of a view that is awaited.
    package var view: Int
    /// The changesets of one upload.
    package var integrate: Int

    package init(allot: Int = 10_000, open: Int = 20_000, store: Int = 10_000, view: Int = 120_000, integrate: Int = 60_000) {
        (self.allot, self.open, self.store, self.view, self.integrate) = (allot, open, store, view, integrate)
    }
}

/// The bounds of a connection's mailbox.
package struct RealmMailboxBounds: Hashable, Sendable {
    /// Messages that wait or are handled. Beyond: the connection closes, and the client retries.
    package var messages: Int
    /// Bytes of these messages. Beyond: reading pauses. Beyond four times as many: as for `messages`.
    package var bytes: Int

    package init(messages: Int = 4_096, bytes: Int = Limits.uploadBytes) {
        (self.messages, self.bytes) = (messages, bytes)
    }
}

/// The services shared by the connections of Realm's protocol.
package struct RealmConnectionServices: Sendable {
    package let store: any RealmClientStore
    package let views: any RealmViews
    package let writes: any RealmWrites
    package let coding: any RealmMessageCoding
    package let environment: any Environment
    package var logger: Logger
    /// The SDK and the app of the client, for log lines; nil if unknown.
    package var sdk: String?
    package var observer: any RealmConnectionObserver = NoRealmConnectionObserver()
    package var waits = RealmConnectionWaits()
    package var mailbox = RealmMailboxBounds()
    package var bounds = ClientStreamBounds()
    /// The models of files without a session.
    package let models = RealmKeptModels()

    /// - Parameter logger: The default drops all lines.
    package init(
        store: any RealmClientStore, views: any RealmViews, writes: any RealmWrites, coding: any RealmMessageCoding,
        environment: any Environment, logger: Logger = Logger(label: "sluice.realm") { _ in SwiftLogNoOpLogHandler() }
    ) {
        (self.store, self.views, self.writes, self.coding) = (store, views, writes, coding)
        (self.environment, self.logger) = (environment, logger)
    }
}
