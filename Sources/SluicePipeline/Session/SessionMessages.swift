import FoundationEssentials
package import SluiceCore
import SluicePorts
import SluiceWire
import SwiftProtobuf

/// Encodes a session's messages and decodes the client's.
package enum SessionMessages {
    static func encode(_ fill: (inout PBServerMessage) -> Void) -> [UInt8] {
        var message = PBServerMessage()
        fill(&message)
        // Encoding fails only beyond 2 GiB. Every message here is bounded far below.
        return (try? WireProtocol.encode(message)) ?? []
    }

    static func welcome(file: ClientFile, schema: Schema, client: [ObjectType], time: Int64) -> [UInt8] {
        encode { message in
            message.welcome = .with {
                $0.protocol = WireProtocol.version
                $0.client = file.id.rawValue
                $0.secret = Data(file.secret)
                $0.schema = cut(schema, to: client).messages
                $0.changeset = file.changeset
                $0.changesetTime = file.time.rawValue
                $0.ingest = file.toldIngest
                $0.ingestTaken = file.ingest
                $0.maxMessageBytes = UInt32(Limits.messageBytes)
                $0.correlation = "\(file.id)"
                $0.time = time
            }
        }
    }

    /// Returns the server's schema with property numbers, restricted to the client's. A class without properties is returned whole.
    private static func cut(_ schema: Schema, to client: [ObjectType]) -> Schema {
        Schema(
            client.compactMap { wanted in
                guard let type = schema[wanted.name] else { return nil }
                let properties = wanted.properties.isEmpty ? type.properties : type.properties.filter { wanted[$0.name] != nil }
                let key = type.primaryKey.map { type.properties[$0].name }
                return ObjectType(name: type.name, kind: type.kind, properties: properties, primaryKey: key)
            })
    }

    static func types(of messages: [PBObjectSchema]) throws(SluiceError) -> [ObjectType] { try Schema(messages: messages).types }

    static func changeset(_ message: PBChangeset, schema: Schema) throws(SluiceError) -> Changeset {
        try Changeset(message, schema: schema)
    }

    static func objects(_ messages: [PBObjectChange], schema: Schema) throws(SluiceError) -> [ObjectChange] {
        try messages.map { message throws(SluiceError) in try ObjectChange(message, schema: schema) }
    }

    /// Encodes an acknowledgement.
    /// - Parameters:
    ///   - changesets: The acknowledged changesets, in ascending order.
    ///   - lsn: A position at or after all of their commits.
    static func uploadAck(of changesets: [Acknowledgement], lsn: LSN) -> [UInt8] {
        encode { message in
            message.uploadAck = .with {
                $0.number = changesets.last?.changeset ?? 0
                $0.lsn = lsn.rawValue
                for changeset in changesets { $0.futile += changeset.futile.map { PBFutileWrite(changeset: changeset.changeset, $0) } }
            }
        }
    }

    /// Encodes a compensating write. The client keeps the server's state of objects with pending writes, so it needs no rows.
    static func compensation(id: UInt64, writes: [WriteRejection]) -> [UInt8] {
        encode { message in
            message.compensation = .with {
                $0.id = id
                $0.writes = writes.map { self.message($0) }
            }
        }
    }

    static func ingestAck(number: UInt64, rejected: [WriteRejection]) -> [UInt8] {
        encode { message in
            message.ingestAck = .with {
                $0.number = number
                $0.writes = rejected.map { self.message($0) }
            }
        }
    }

    private static func message(_ write: WriteRejection) -> PBRejectedWrite {
        PBRejectedWrite(
            RejectedWriteReport(
                changeset: write.changeset, object: write.object, error: SluiceError(write.code, write.reason), cause: write.cause,
                fields: write.fields, values: write.values))
    }

    static func markReached(_ id: UInt64) -> [UInt8] { encode { $0.markReached = .with { $0.id = id } } }

    /// - Parameter index: The index of the rejected query in the set; nil if the error is of the whole set.
    static func queryError(version: UInt64, _ error: SluiceError, index: Int?) -> [UInt8] {
        encode { $0.queryError = PBQueryError(version: version, error, index: index) }
    }

    package static func error(_ error: SluiceError, isRecoveryAllowed: Bool = true) -> [UInt8] {
        let action = error.code.sessionAction
        return encode {
            $0.error = PBSessionError(
                error, action: action == .clientReset && !isRecoveryAllowed ? .clientResetNoRecovery : action, fatal: true,
                backoffMilliseconds: error.code.isPluginFailure ? RulesBackoff.backoffMilliseconds : 0)
        }
    }
}

extension ErrorCode {
    /// The client's action after an error that ends its session.
    var sessionAction: SessionAction {
        switch recovery {
        case .refreshToken: .refreshUser
        case .logIn: .logOutUser
        case .resetReplica: .clientReset
        case .resetReplicaWithoutRecovery: .clientResetNoRecovery
        case .changeApp: .applicationBug
        case .wait, .repair, .changeInput: .transient
        }
    }
}

extension PBHeldType {
    /// The field `sealed` as bytes.
    var sealedBytes: [UInt8] {
        get { Array(sealed) }
        set { sealed = Data(newValue) }
    }
}

extension PBHeld {
    /// The fields `witness` and `committed`, decoded.
    var position: HistoryAnchor? {
        get { HistoryAnchor(witness) }
        set { witness = Data(newValue?.bytes ?? []) }
    }
    var point: HistoryAnchor? {
        get { HistoryAnchor(committed) }
        set { committed = Data(newValue?.bytes ?? []) }
    }
}

extension PBCheckpoint {
    /// The field `committed`, decoded.
    var point: HistoryAnchor? {
        get { HistoryAnchor(committed) }
        set { committed = Data(newValue?.bytes ?? []) }
    }
}

extension PBHello {
    /// The history that the replica has seen.
    var history: SeenHistory {
        SeenHistory(
            applied: LSN(rawValue: appliedLsn), position: witness.isEmpty ? held.position : HistoryAnchor(witness), point: held.point)
    }
}
