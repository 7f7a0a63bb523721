import SluiceCore

/// The single values of a file.
struct ReplicaMeta: Hashable {
    var identity: ReplicaIdentity?
    var applied = AppliedPosition(lsn: .zero, version: 0)
    /// The number of the last changeset written.
    var changeset: UInt64 = 0
    /// The last own changeset that the server rows reflect.
    var taken: UInt64 = 0
    /// The number of the last ingest batch formed.
    var ingest: UInt64 = 0
    var clock = HybridTime.zero
    /// The last tag given to an element inserted into a list.
    var tag: UInt64 = 0
    /// The number of the last compensation applied.
    var compensation: UInt64 = 0
    /// The subscription set version of the bootstrap under way, which the staged rows belong to. 0 if there is none.
    var bootstrapping: UInt64 = 0
    /// The gateway's client view record, unchanged. Empty if there is none.
    var held: [UInt8] = []
    /// The gateway's resume offer for the bootstrap under way, unchanged. Empty if there is none.
    var checkpoint: [UInt8] = []
    /// The highest id that a subscription ever had.
    var subscription: UInt64 = 0
    /// The client reset under way, a `ReplicaReset` or 0, and the number of resets begun since the last that ended.
    var reset: UInt64 = 0
    var resets: UInt64 = 0
    /// The user whose writes are in the file. Empty if there is none.
    var owner = ""

    var fields: [String: Value] {
        func number(_ value: UInt64) -> Value { .int(Int64(bitPattern: value)) }
        return [
            "client": identity.map { number($0.client.rawValue) } ?? .null,
            "secret": identity.map { .binary($0.secret) } ?? .null,
            "applied_lsn": number(applied.lsn.rawValue), "applied_version": number(applied.version),
            "witness": .binary(applied.witness),
            "changeset": number(changeset), "taken": number(taken), "ingest": number(ingest), "clock": number(clock.rawValue),
            "compensation": number(compensation), "bootstrapping": number(bootstrapping), "held": .binary(held),
            "checkpoint": .binary(checkpoint),
            "subscription": number(subscription), "reset": number(reset), "resets": number(resets),
            "tag": number(tag), "owner": .string(owner),
        ]
    }

    init() {}

    init(_ fields: [String: Value]) {
        func number(_ name: String) -> UInt64 { if case .int(let v)? = fields[name] { UInt64(bitPattern: v) } else { 0 } }
        if case .int(let client)? = fields["client"], case .binary(let secret)? = fields["secret"] {
            identity = ReplicaIdentity(client: ClientID(rawValue: UInt64(bitPattern: client)), secret: secret)
        }
        applied = AppliedPosition(lsn: LSN(rawValue: number("applied_lsn")), version: number("applied_version"))
        if case .binary(let bytes)? = fields["witness"] { applied.witness = bytes }
        changeset = number("changeset")
        taken = number("taken")
        ingest = number("ingest")
        clock = HybridTime(rawValue: number("clock"))
        tag = number("tag")
        compensation = number("compensation")
        bootstrapping = number("bootstrapping")
        if case .binary(let bytes)? = fields["held"] { held = bytes }
        if case .binary(let bytes)? = fields["checkpoint"] { checkpoint = bytes }
        subscription = number("subscription")
        reset = number("reset")
        resets = number("resets")
        if case .string(let text)? = fields["owner"] { owner = text }
    }
}

extension Connection {
    /// Returns the single values of the file, by name.
    func meta() throws(SluiceError) -> [String: Value] {
        let statement = try statement("SELECT name, value FROM _sluice_meta")
        var fields: [String: Value] = [:]
        while try statement.step() { fields[statement.string(0)] = StoredValue.decode(statement.bytes(1)) }
        statement.reset()
        return fields
    }
}
