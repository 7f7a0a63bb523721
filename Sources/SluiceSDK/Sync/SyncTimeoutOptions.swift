import SluiceSync
import Synchronization

/// The timeouts of sync, in milliseconds. 0 and unset values mean the default.
///
/// They apply to Realms that are opened after `SyncManager.timeoutOptions` is set.
public final class SyncTimeoutOptions: Sendable {
    struct Values: Hashable, Sendable {
        var connect: UInt = 0
        var linger: UInt = 0
        var ping: UInt = 0
        var pong: UInt = 0
        var fastReconnect: UInt = 0

        /// The greatest value, about thirty years in milliseconds. Higher ones are reduced to it, which the clock can still add.
        private static let longest: UInt64 = 1_000_000_000_000

        var timing: SyncTiming {
            func time(_ value: UInt, else standard: UInt64) -> UInt64 { value == 0 ? standard : min(UInt64(value), Values.longest) }
            let standard = SyncTiming()
            return SyncTiming(
                connect: time(connect, else: standard.connect), ping: time(ping, else: standard.ping),
                pong: time(pong, else: standard.pong), transport: connect == 0 ? nil : time(connect, else: 0))
        }
    }

    private let state: Mutex<Values>

    public init(
        connectTimeout: UInt? = nil, connectionLingerTime: UInt? = nil, pingKeepalivePeriod: UInt? = nil, pongKeepaliveTimeout: UInt? = nil,
        fastReconnectLimit: UInt? = nil
    ) {
        state = Mutex(
            Values(
                connect: connectTimeout ?? 0, linger: connectionLingerTime ?? 0, ping: pingKeepalivePeriod ?? 0,
                pong: pongKeepaliveTimeout ?? 0, fastReconnect: fastReconnectLimit ?? 0))
    }

    init(_ values: Values) { state = Mutex(values) }

    var values: Values { state.withLock { $0 } }

    /// The time from the start of a connection attempt until the session has begun, including name resolution and all handshakes.
    /// After it the attempt fails and is retried. Default 120,000.
    /// Unless it is set, the TCP connection and the response to the upgrade are limited to 15,000 each.
    public var connectTimeout: UInt {
        get { UInt(clamping: values.timing.connect) }
        set { state.withLock { $0.connect = newValue } }
    }

    /// No effect: a connection ends with its Realm. Default 30,000.
    public var connectionLingerTime: UInt {
        get { values.linger == 0 ? 30_000 : values.linger }
        set { state.withLock { $0.linger = newValue } }
    }

    /// The interval between pings. Default 30,000, half of RealmSwift's.
    public var pingKeepalivePeriod: UInt {
        get { UInt(clamping: values.timing.ping) }
        set { state.withLock { $0.ping = newValue } }
    }

    /// The time after a ping without any data, after which the connection counts as lost. Default 30,000, a quarter of RealmSwift's.
    public var pongKeepaliveTimeout: UInt {
        get { UInt(clamping: values.timing.pong) }
        set { state.withLock { $0.pong = newValue } }
    }

    /// No effect: writes are uploaded as soon as there is a connection. Default 60,000.
    public var fastReconnectLimit: UInt {
        get { values.fastReconnect == 0 ? 60_000 : values.fastReconnect }
        set { state.withLock { $0.fastReconnect = newValue } }
    }
}
