import pyarrow as pa
import pytest

from thalweg.engine.generators import GeneratorError
from thalweg.engine.generators.sensors import Sensors, SensorSettings


@pytest.fixture(scope="module")
def readings():
    settings = SensorSettings(seed=4, rate=1.0, limit=2 * 86_400, sensors=20, missing=0.05)
    return pa.Table.from_batches(Sensors(settings).batches("Reading")).to_pandas()


def test_sensor_stays_in_its_room(readings):
    assert (readings.groupby("sensor")["room"].nunique() == 1).all()
    assert (readings.groupby("room")["sensor"].nunique() == 4).all()


def test_afternoons_are_warm_and_dry_in_every_room(readings):
    hour = readings["ts"].dt.hour
    afternoon, night = readings[hour == 15], readings[hour == 3]
    warmer = (
        afternoon.groupby("room")["temperature"].mean()
        - night.groupby("room")["temperature"].mean()
    )
    assert warmer.between(5.5, 6.5).all()
    assert afternoon["humidity"].mean() < night["humidity"].mean() - 15


def test_set_share_of_values_is_missing(readings):
    assert readings["temperature"].isna().mean() == pytest.approx(0.05, abs=0.005)
    assert readings["humidity"].isna().mean() == pytest.approx(0.05, abs=0.005)
    assert readings["sensor"].notna().all()


@pytest.mark.parametrize("wrong", [{"sensors": 0}, {"missing": 1.5}])
def test_senseless_settings_are_refused(wrong):
    with pytest.raises(GeneratorError, match=r"is a share|is 1 or more"):
        SensorSettings(**wrong)
