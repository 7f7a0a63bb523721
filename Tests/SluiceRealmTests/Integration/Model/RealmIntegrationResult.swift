import SluiceCore

@testable import SluiceRealm

/// One uploaded changeset.
struct RealmUploadedChangeset: Hashable, Sendable {
    var file: UInt64
    var clientVersion: UInt64
    /// The last server version that the client had integrated.
    var base: UInt64
    /// Milliseconds since 2015-01-01, by the client's clock.
    var time: UInt64
    var instructions: [RealmInstruction]

    init(file: UInt64, clientVersion: UInt64, base: UInt64, time: UInt64, instructions: [RealmInstruction]) {
        (self.file, self.clientVersion, self.base) = (file, clientVersion, base)
        (self.time, self.instructions) = (time, instructions)
    }
}

/// An entry for the stream of one file. It keeps its client version when it is sent again.
struct RealmDelivery: Hashable, Sendable {
    var serverVersion: UInt64
    /// The version of the recipient's last changeset that had taken effect.
    var clientVersion: UInt64
    var stamp: RealmStamp
    var instructions: [RealmInstruction]
}

/// The reason why the changes of an object were undone.
enum RealmRejection: Hashable, Sendable {
    /// The object is not in the writer's view, or a created one does not match it.
    case outsideOfView
    /// The rules do not permit the change.
    case notPermitted
    /// The change concerns a place inside an element, an embedded object or a mixed value.
    case unsupportedPlace
}

/// The effects of one uploaded changeset.
struct RealmIntegrationResult: Hashable, Sendable {
    var serverVersion: UInt64
    /// The entries by recipient, the writer included.
    var deliveries: [UInt64: RealmDelivery] = [:]
    /// The objects whose changes were undone. They need a notice of a compensating write.
    var rejected: [ObjectKey: RealmRejection] = [:]
    /// The files that exceeded a bound. They are forgotten, and must be reset.
    var resets: Set<UInt64> = []
}

/// The views and permissions of files.
protocol RealmViewRules {
    /// Returns `true` if the object matches the file's queries.
    func isInView(_ object: ObjectKey, _ values: [String: Value], of file: UInt64) -> Bool
    /// Returns `true` if the file may make the change. Nil stands for an object that does not exist.
    func permits(_ object: ObjectKey, from before: [String: Value]?, to after: [String: Value]?, by file: UInt64) -> Bool
}
