package import SluiceCore
import SluiceIdentity
package import SluicePorts
package import SluiceValues
import SluiceWire

extension UserEvent {
    /// The record in the topic as JSON. docs/events.md describes it.
    package var json: JSON {
        [
            "id": .int(id), "kind": .string(kind.rawValue), "at": ExtendedForm.timestamp(time).json, "provider": .string(provider),
            "user": account.context.json,
        ]
    }

    private var time: Timestamp { Timestamp(milliseconds: milliseconds) }

    /// Returns the bytes of the record in the topic. Both forms carry the same.
    ///
    /// - Throws: `internalError` for an event that Protobuf cannot encode, such as one over 2 GiB.
    package func record(_ content: RecordContent) throws(SluiceError) -> [UInt8] {
        switch content {
        case .json: json.utf8
        case .protobuf: try WireProtocol.encode(message)
        }
    }

    private var message: PBUserEvent {
        var message = PBUserEvent()
        message.id = id
        message.kind = kind.message
        message.at = PBTimestamp(time)
        message.provider = provider
        message.user = PBUser(account.context)
        return message
    }
}

extension UserEvent.Kind {
    fileprivate var message: PBUserEvent.Kind {
        switch self {
        case .registered: .registered
        case .created: .created
        case .loggedIn: .loggedIn
        case .disabled: .disabled
        case .enabled: .enabled
        case .deleted: .deleted
        }
    }
}

extension PBUser {
    fileprivate init(_ user: UserContext) {
        self.init()
        id = user.id
        type = user.type
        data = PBValue(Value(user.data))
        customData = PBValue(Value(user.customData))
        identities = (user.identities.array ?? []).map { identity in
            var message = PBUserIdentity()
            message.id = identity["id"]?.string ?? ""
            message.providerType = identity["provider_type"]?.string ?? ""
            return message
        }
    }
}

extension Value {
    /// The JSON as it is: an object of Extended JSON stays a dictionary, so that every text of an account has a value.
    fileprivate init(_ json: JSON) {
        switch json {
        case .null: self = .null
        case .bool(let value): self = .bool(value)
        case .int(let value): self = .int(value)
        case .double(let value): self = .double(value)
        case .string(let value): self = .string(value)
        case .array(let elements): self = .list(elements.map { Value($0) })
        case .object(let members):
            self = .dictionary(Dictionary(members.map { ($0.key, Value($0.value)) }, uniquingKeysWith: { $1 }))
        }
    }
}
