import Foundation
import RealmSwift

// The classes of the airport app, as an app developer writes them. Nothing in them knows of the gateway.

/// A flight that left New York in 2013.
public final class Flight: Object {
    @Persisted(primaryKey: true) public var _id: Int
    @Persisted public var year: Int
    @Persisted public var month: Int
    @Persisted public var day: Int
    /// Local time as hours and minutes, 517 being 5:17; nil when the flight never left.
    @Persisted public var dep_time: Int?
    @Persisted public var sched_dep_time: Int
    /// Minutes; negative is early.
    @Persisted public var dep_delay: Int?
    @Persisted public var arr_time: Int?
    @Persisted public var sched_arr_time: Int
    @Persisted public var arr_delay: Int?
    @Persisted public var carrier: String
    @Persisted public var flight: Int
    @Persisted public var tailnum: String?
    /// The indexed queryable field: every subscription says which airports it wants.
    @Persisted public var origin: String
    @Persisted public var dest: String
    @Persisted public var time_hour: Date
    /// What the agents at the gate write.
    @Persisted public var remark: String?
    @Persisted public var gate: String?
}

/// One weather report; written, never read by the app.
public final class WeatherObservation: AsymmetricObject {
    @Persisted(primaryKey: true) public var _id: String
    @Persisted public var origin: String
    @Persisted public var time: Date
    @Persisted public var temp: Double?
    @Persisted public var humidity: Double?
    @Persisted public var wind_direction: Double?
    @Persisted public var wind_speed: Double?
    @Persisted public var pressure: Double?
    /// `us` (°F, mph, inch) or `si`; the gateway's plugin makes everything SI.
    @Persisted public var units: String
    @Persisted public var source: String?
}
