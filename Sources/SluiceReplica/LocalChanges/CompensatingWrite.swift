package import SluiceCore

/// A compensating write: a write that the gateway rejected, and that the replica has undone.
package struct CompensatingWrite: Hashable, Sendable {
    /// The changeset that carried it.
    package var changeset: UInt64
    package var object: ObjectKey
    /// A code of `ErrorCode`'s table, as the gateway sent it.
    package var code: UInt16
    /// A `RejectionCause`, or one that only a newer gateway knows. Empty for asymmetric objects.
    package var cause: String
    package var reason: String
    /// The fields at fault. Empty if the whole object is.
    package var fields: [String]
    /// The app's intended values, by property: the gateway's, overridden by the replica's own if it still has them.
    package var values: [String: Value]

    package init(
        changeset: UInt64 = 0, object: ObjectKey, code: UInt16, cause: String = "", reason: String, fields: [String] = [],
        values: [String: Value] = [:]
    ) {
        self.changeset = changeset
        self.object = object
        self.code = code
        self.cause = cause
        self.reason = reason
        self.fields = fields
        self.values = values
    }
}

/// A write to an object that was deleted by others, unknown to the device. It had no effect.
package struct FutileWrite: Hashable, Sendable {
    /// The changeset that carried it.
    package var changeset: UInt64
    package var object: ObjectKey

    package init(changeset: UInt64, object: ObjectKey) {
        self.changeset = changeset
        self.object = object
    }
}

/// Compensating writes that were not reported to the app yet. They survive a restart until `CompensationReports.forget(_:)`.
package struct CompensationReport: Hashable, Sendable {
    /// The number in this replica, from 1.
    package var id: UInt64
    package var writes: [CompensatingWrite]

    package init(id: UInt64, writes: [CompensatingWrite]) {
        self.id = id
        self.writes = writes
    }
}
