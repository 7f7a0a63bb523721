package import SluiceCore
package import SluiceValues

/// A database trigger's place in a partition. All changes up to its position are delivered, given up or of no concern.
package struct TriggerCursor: Hashable, Sendable {
    package var position: Position
    /// The offset from which to read on. It may belong to an earlier log, so the position decides about a record.
    package var offset: Int64
    /// The number of times that a gateway has opened the cursor. A gateway with a smaller number may not move it.
    package var turn: Int64

    package init(position: Position, offset: Int64, turn: Int64) {
        self.position = position
        self.offset = offset
        self.turn = turn
    }
}

/// A trigger and the topic that it reads.
package struct TriggerTopic: Hashable, Sendable {
    package var trigger: String
    package var topic: String
    package var partitions: Int32

    package init(trigger: String, topic: String, partitions: Int32) {
        self.trigger = trigger
        self.topic = topic
        self.partitions = partitions
    }
}

/// A call of a trigger that is given up.
package struct TriggerFailure: Hashable, Sendable {
    package var trigger: String
    package var attempts: Int
    /// The error of the last attempt.
    package var reason: String
    /// The argument of the call, in extended JSON.
    package var event: JSON

    package init(trigger: String, attempts: Int, reason: String, event: JSON) {
        self.trigger = trigger
        self.attempts = attempts
        self.reason = reason
        self.event = event
    }
}

/// The partitions that a gateway holds for a trigger.
package struct TriggerClaim: Hashable, Sendable {
    package var partitions: Set<Int32>
    /// The number of partitions that are this gateway's share. It gives away those beyond it once it has no need to keep them.
    package var share: Int

    package init(partitions: Set<Int32>, share: Int) {
        self.partitions = partitions
        self.share = share
    }
}

/// Stores the cursors of database triggers, and divides their partitions among the gateways.
package protocol TriggerStore: Sendable {
    /// Claims this gateway's share of a topic's partitions for a trigger. All gateways that claim divide them among themselves.
    /// One caller a trigger calls it repeatedly. A claim lasts until `release` or the loss of the connection.
    ///
    /// - Parameter kept: The partitions that are not given away, as calls are under way.
    func claim(_ topic: TriggerTopic, keeping kept: Set<Int32>) async throws -> TriggerClaim
    /// Releases every claimed partition of a trigger.
    func release(_ topic: TriggerTopic) async
    /// Creates the missing cursors of a trigger at the database's present position.
    ///
    /// - Parameter ends: The present end of each partition, from which a new cursor reads.
    func begin(_ topic: TriggerTopic, ends: [Int32: Int64]) async throws
    /// Opens the cursors of claimed partitions. No gateway that opened one before can move it from now on. Creates the missing ones as
    /// `begin` does.
    func open(_ topic: TriggerTopic, ends: [Int32: Int64]) async throws -> [Int32: TriggerCursor]
    /// Stores cursors.
    ///
    /// - Returns: The partitions whose cursors were stored. Another gateway has opened the others.
    func save(_ topic: TriggerTopic, _ cursors: [Int32: TriggerCursor]) async throws -> Set<Int32>
    /// Deletes the cursors of triggers, which begin at the present position when they run again.
    func forget(_ triggers: [String]) async throws
    /// Stores a call that is given up. The caller moves the cursor.
    func bury(_ failure: TriggerFailure) async throws
}
